"""Tensors that go from rank to rank, as one message of bytes, while both compute."""

from math import prod

import torch
import torch.distributed as dist

_ALIGNED = 16


class Parcel:
    """Room in one buffer for tensors, by the size and type of each; images lie channels last."""

    def __init__(self, device, forms):
        begins, end = [], 0
        for size, kind in forms:
            begins.append(end)
            end += -(-_bytes(size, kind) // _ALIGNED) * _ALIGNED
        self.bytes = torch.empty(end, dtype=torch.uint8, device=device)
        self.tensors = [
            _within(self.bytes[begin:], size, kind) for begin, (size, kind) in zip(begins, forms)
        ]


def _bytes(size, kind):
    return prod(size) * torch.empty((), dtype=kind).element_size()


def _within(room, size, kind):
    numbers = room[: _bytes(size, kind)].view(kind)
    if len(size) != 4:
        return numbers.view(size)
    samples, channels, height, width = size
    return numbers.view(samples, height, width, channels).permute(0, 3, 1, 2)


class Box:
    """Parcels of one form, between this rank and some others; nobody needs what a free one has."""

    def __init__(self, new, groups):
        self._new, self._groups = new, groups
        self._free, self._under_way = [], {}
        self.give_back = self._free.append

    def _room(self):
        return self._free.pop() if self._free else self._new()


class Inbox(Box):
    def expect(self, batch, source):
        """Say that a rank's next parcel is of that batch; it may come from now on."""
        parcel = self._room()
        work = dist.irecv(parcel.bytes, source, self._groups[source])
        self._under_way[batch] = work, parcel

    def take(self, batch):
        """The parcel of a batch that was expected, once it is there."""
        work, parcel = self._under_way.pop(batch)
        work.wait()
        return parcel


class Outbox(Box):
    def send(self, batch, target, tensors):
        """Send a rank a parcel of a batch; the tensors may be changed at once."""
        parcel = self._room()
        for place, tensor in zip(parcel.tensors, tensors):
            place.copy_(tensor)
        work = dist.isend(parcel.bytes, target, self._groups[target])
        self._under_way[batch, target] = work, parcel

    def arrived(self, batch, target):
        """Take back the parcels of batches up to one, which their receiver has by now."""
        self._take_back(one for one in self._under_way if one[0] <= batch and one[1] == target)

    def all_arrived(self):
        self._take_back(self._under_way)

    def _take_back(self, which):
        for one in list(which):
            work, parcel = self._under_way.pop(one)
            work.wait()
            self.give_back(parcel)
