"""Gradients averaged over some ranks, while others of them are still computed."""

from functools import partial

import torch
import torch.distributed as dist

BUCKET = 25 << 20
"""Bytes that travel together, as DistributedDataParallel has it; a larger weight travels alone."""


class Average:
    """Averages the gradients of equal weights, which come from the last one to the first."""

    def __init__(self, weights, group, ranks):
        self._group, self._ranks = group, ranks
        self._buckets, self._places = [], {}
        room, members = 0, []
        for number, weight in reversed(list(enumerate(weights))):
            size = weight.numel() * weight.element_size()
            if members and room + size > BUCKET:
                self._fill(members, weights)
                room, members = 0, []
            room += size
            members.append(number)
        self._fill(members, weights)
        self._begin()

    def _fill(self, members, weights):
        count = sum(weights[number].numel() for number in members)
        flat = weights[members[0]].new_empty(count)
        begin = 0
        for number in members:
            weight = weights[number]
            # As the weight lies in memory, so that no optimizer has to turn it.
            view = flat.as_strided(weight.size(), weight.stride(), begin)
            self._places[number] = len(self._buckets), view
            begin += weight.numel()
        self._buckets.append((flat, len(members)))

    def _begin(self):
        self._missing = [count for _, count in self._buckets]
        self._works = []

    def watch(self, weights):
        """Average the gradients of these from now on, whenever one is computed."""
        for number, weight in enumerate(weights):
            weight.register_hook(partial(self._came, number))

    def _came(self, number, gradient):
        bucket, view = self._places[number]
        torch.div(gradient, self._ranks, out=view)
        self._missing[bucket] -= 1
        # In their order, which all ranks have in common.
        while len(self._works) < len(self._buckets) and not self._missing[len(self._works)]:
            flat, _ = self._buckets[len(self._works)]
            self._works.append(dist.all_reduce(flat, group=self._group, async_op=True))

    def add(self, gradients):
        """Average these, of all weights in their order, where none is watched."""
        for number in reversed(range(len(gradients))):
            self._came(number, gradients[number])

    def wait(self):
        """The averages of all gradients, in the order of the weights."""
        for work in self._works:
            work.wait()
        self._begin()
        return [self._places[number][1] for number in range(len(self._places))]
