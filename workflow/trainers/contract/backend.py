"""What a framework gives the driver: a Backend, one a process, and a Step, which trains.

In a framework's folder `before`, which imports nothing of the framework, has PLACE, this process's
Place, and may have prepare(flags), which sets what the framework reads on import. `backend`, or the
module that a system.yaml names, has the class Backend. What may not wait for the device:
Step.__call__, Backend.placed's iterator, a mark.
"""

import itertools
import json
import math
import os
import time
from collections import deque
from typing import NamedTuple

import numpy as np

from trainers.contract import process
from trainers.contract.meeting import PARTING, Meeting
from trainers.contract.steplog import Refused
from trainers.contract.weights import synthetic_batch


class Place(NamedTuple):
    rank: int
    local_rank: int
    world_size: int


def place_in(rank, local_rank, world_size):
    """The Place that variables of these names say; a process alone where they are not set."""
    names = (rank, 0), (local_rank, 0), (world_size, 1)
    return Place(*(int(os.environ.get(name, alone)) for name, alone in names))


def no_gpu(what, system):
    """What refuses a framework that finds no GPU for this process; the system has an image."""
    image = f"the image of envs/{system}.image.yaml"
    return Refused(f"{what}; allowed: a build for GPUs, such as {image}, on GPUs")


class Backend:
    """A framework on this process's device.

    The driver makes it first: the device is ready then, and the ranks are connected. Each framework
    brings

    - numbers(array): a numpy array, float32 or int64, on the device, once it is there; counts and
      messages between ranks are such numbers, and trainers.contract.trial computes with them;
    - versions(): name -> version: the framework's, such as "torch", then those of its libraries;
    - gpu_memory(): the most bytes of the GPU so far; gpu_memory_is says of what;
    - put(batch): a batch on the device: of numpy's arrays, or what the framework's readers give;
    - step(work): the Step of data-parallel training; a system may bring another.
    """

    computes = {}
    """Device -> the data types in which it computes there beside float32. TF32 is on only if the
    flags ask for it, for convolutions and products; so say variables that reperf.training sets."""
    library = ""  # what adds up numbers of different ranks, such as "gloo"
    device_name = "cpu"
    gpu_memory_is = "allocated"
    """What peak_memory tells of a GPU: what is "allocated" by the framework, or all "in use"."""
    reader_device = None  # what a function that reads data is given as its device

    def __init__(self, flags, place):
        self.flags, self.place = flags, place
        self.meeting = Meeting.of(place)
        """Where ranks meet that no collective joins; None: they have one."""

    def array(self, numbers):
        return numbers.numpy()

    def all_reduce(self, numbers):
        """Their sums over all ranks, once those are there. `numbers` may be overwritten."""
        if self.meeting is None:
            return numbers
        array = self.array(numbers)
        every = self.meeting.gather(array.tolist())
        return self.numbers(np.sum(every, axis=0, dtype=array.dtype))

    @property
    def peak_memory_is(self):
        """What peak_memory tells: on a CPU it is "resident" memory, or "address space"."""
        if self.flags.device == "cuda":
            return self.gpu_memory_is
        return "address space" if process.is_limited() else "resident"

    def peak_memory(self):
        return self.gpu_memory() if self.flags.device == "cuda" else process.peak_memory()

    def settled(self):
        """The first iterations are over: what they alone asked for counts no more."""

    def allocation_retries(self):
        """How often the device was full since then, and took memory anew; None: nobody counts."""
        return None

    def mark(self):
        """Mark the end of the device's work; see Feed. None: it has always finished."""
        return None

    def disconnect(self):
        """End what connects the ranks, as the framework does that, when all have come so far."""

    def leave(self):
        """Disconnect; back once all ranks have done so, and this process may end."""
        # A collective's last answer may still be on its way, which fails there if this one ends.
        self.disconnect()
        parting = None if self.meeting else Meeting.of(self.place, PARTING)
        if parting:
            parting.gather("left")

    def placed(self, batches):
        """An iterator of batches as one of batches on the device; it may put the next one ahead."""
        return map(self.put, batches)

    def total(self, counts):
        """The sums of all ranks' counts, by their units; its own, if each keeps its own time."""
        if self.place.world_size == 1 or not counts or self.flags.own_time:
            return counts
        sums = self._sum_of_all(np.array(list(counts.values()), np.int64))
        return dict(zip(counts, sums.tolist()))

    def gather(self, value):
        """The value of each rank, in their order: anything that JSON can say."""
        rank, _, world_size = self.place
        if world_size == 1:
            return [value]
        if self.meeting is not None:
            return self.meeting.gather(value)
        said = np.frombuffer(json.dumps(value).encode(), np.uint8)
        lengths = np.zeros(world_size, np.int64)
        lengths[rank] = len(said)
        lengths = self._sum_of_all(lengths)
        rows = np.zeros((world_size, int(lengths.max())), np.int64)
        rows[rank, : len(said)] = said
        rows = self._sum_of_all(rows)
        return [json.loads(bytes(row[:end].tolist())) for row, end in zip(rows, lengths)]

    def _sum_of_all(self, array):
        return self.array(self.all_reduce(self.numbers(array)))


def idle_since(has_finished):
    """The answer of a mark that only knows whether the device has finished now."""
    # It may then have been idle for as long as anybody waited.
    return lambda: -math.inf if has_finished() else math.inf


class Step:
    """One iteration of training: of the whole model, of a stage or of a shard.

    Made ready to train: weights at their start, optimizer, batches. Each one has

    - weights(): name of each weight that this rank holds, or of its share, and what `read` takes,
      which knows its `shape`;
    - without_dropout(): the loss of the batch on which the first iteration will train, nothing
      dropped out;
    - a call, with whether the loss is `wanted`: it trains one iteration, waiting for nothing but
      batches, and returns what fetch takes. Gradients and losses of several batches are averaged,
      as if they were one;
    - fetch(loss): this rank's loss, once the device has done all that it was given; or None.
    """

    accumulates = False
    """Whether an iteration takes as many batches as the flags say, and updates the weights once."""
    model_part = "all"
    """Which part of the model this rank holds; ranks of equal parts must end with equal weights."""
    optimizer = ""  # where the optimizer comes from, for the record
    feed = None
    """Where its batches come from: a Feed, or an object with a Feed's waited and counted."""
    pass_alone = None
    """Computes a batch's gradients, waits for the device but for no rank, and may spoil the model;
    None: ranks wait for each other within a pass."""

    def read(self, weight):
        """The array of a weight; it waits."""
        return np.asarray(weight)

    def arrays(self):
        """Name and array of each weight."""
        return ((name, self.read(weight)) for name, weight in self.weights())

    def size(self):
        """The number of parameters. No value is read, because a table may lie on another host."""
        return sum(int(np.prod(list(weight.shape))) for _, weight in self.weights())

    def begin(self):
        """Compile what iterations need, after the loss without dropout, before the first one."""

    def alone(self):
        """Seconds that this rank takes for a batch's gradients by itself; None: unknown."""
        # In a run each rank waits for the slowest one; this shows, afterwards, which that is.
        if self.pass_alone is None:
            return None
        batch = next(self.feed)
        return seconds_alone(lambda: self.pass_alone(batch))

    def finish(self):
        """Train what is still under way after the last iteration, which no log shows."""


PASSES, LEAST_SECONDS = 8, 0.5
"""How many times a rank computes gradients by itself, and for how long, at least.

A quota of CPU time, or heat, holds a rank back for a part of each tenth of a second, which most
passes of a few milliseconds do not show: so the mean counts, not the median.
"""


def seconds_alone(once):
    """The mean seconds of a call of `once`, which waits for the device."""
    once()  # it may trace or compile
    begun, passes, seconds = time.perf_counter(), 0, 0.0
    while passes < PASSES or seconds < LEAST_SECONDS:
        once()
        passes += 1
        seconds = time.perf_counter() - begun
    return seconds / passes


class NoFeed:
    """Of a rank that others give what it computes: its batches are None."""

    def __next__(self):
        return None

    peek = __next__

    def waited(self):
        """Seconds that training has waited for batches."""
        return 0.0

    def counted(self, batches):
        return {}


class Counts:
    """Adds up what a rank's batches count besides samples, such as tokens, on the host."""

    def __init__(self, recipe):
        self._of = getattr(recipe, "counts", None)
        self._read = deque()  # of each batch that was read and that is not in the sum yet
        self._summed = 0
        self._sum = {}
        self._each = None

    def of(self, batches):
        """The same batches, each counted when it is taken, which may be ahead of training."""
        for batch in batches:
            if self._of is not None:
                self._read.append(self._whole(batch))
            yield batch

    def _whole(self, batch):
        return {unit: int(count) for unit, count in self._of(batch).items()}

    def always(self, batch):
        """Take it that each iteration trains on this one batch."""
        self._each = self._whole(batch) if self._of else {}

    def after(self, iteration):
        """What was trained on up to an iteration, no earlier one than before: {"tokens": 4096}."""
        if self._each is not None:
            return {unit: count * iteration for unit, count in self._each.items()}
        while self._read and self._summed < iteration:
            for unit, count in self._read.popleft().items():
                self._sum[unit] = self._sum.get(unit, 0) + count
            self._summed += 1
        return dict(self._sum)


class Feed:
    """Batches that Python takes: timed, counted, on the device.

    Training waits for one from when the device had done all that it was given, as Backend.mark's
    answer says, until it has come. `share` is which of how many readers this rank is; `prepared`
    makes of batches on the host what the model takes; `counts` is whether they are counted: ranks
    that share layers read the same.
    """

    def __init__(self, backend, work, share=None, prepared=iter, counts=True):
        flags, (rank, _, world_size) = work.flags, backend.place
        share = share or (rank, world_size)
        self._backend, self._counts, self._first = backend, Counts(work.recipe), None
        self._waited, self._is_counted = 0.0, counts
        self._reads = flags.input != "synthetic"
        if self._reads:
            read = self._counts.of(work.batches(flags, *share, backend.reader_device))
            self._batches = backend.placed(prepared(read))
        else:
            batch = synthetic_batch(work.recipe, flags, share[0])
            self._counts.always(batch)
            self._batches = itertools.repeat(backend.put(next(prepared(iter([batch])))))

    def peek(self):
        """The first batch, which comes again."""
        self._first = next(self)
        return self._first

    def __next__(self):
        if self._first is not None:
            batch, self._first = self._first, None
            return batch
        if not self._reads:
            return next(self._batches)
        idle_since = self._backend.mark()
        begun = time.perf_counter()
        batch = next(self._batches)
        come = time.perf_counter()
        if idle_since is not None:
            begun = max(begun, idle_since())
        self._waited += max(0.0, come - begun)
        return batch

    def waited(self):
        """Seconds that training has waited for batches; None: nobody knows."""
        return self._waited

    def counted(self, batches):
        """What all ranks have trained on in so many batches each, such as {"tokens": 4096}."""
        own = self._counts.after(batches)
        return self._backend.total(own if self._is_counted else dict.fromkeys(own, 0))
