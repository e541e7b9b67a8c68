"""PipeDream: an asynchronous pipeline of unequal stages, with weight stashing.

trainers.contract.delayed has the order of stages. Each of torch's `Parameter`s is one version of a
weight: an update of those through which a batch has yet to go backward makes new ones first.
"""

from functools import partial
from typing import Any, NamedTuple

import torch
import torch.distributed as dist
from torch import nn
from torch.autograd.graph import increment_version

from trainers.contract import backend as contract
from trainers.contract import recipe
from trainers.contract.delayed import Turns, depth
from trainers.contract.stages import name_of, shares, stage_of
from trainers.contract.steplog import Refused
from trainers.contract.waiting import Waits
from trainers.frameworks.torch.averaging import Average
from trainers.frameworks.torch.backend import Step, start
from trainers.frameworks.torch.inputs import prepared
from trainers.frameworks.torch.mail import Inbox, Outbox, Parcel

ACTIVATIONS, GRADIENTS = "activations", "gradients"


class Flight(NamedTuple):
    """A batch that has gone forward and not backward yet."""

    weights: list  # the version through which it went
    counts: list  # how often each of these had been changed by then
    parcel: Any  # what it came in; None in the first stage
    inputs: list  # what it came as, if a gradient of it is wanted
    outputs: Any  # what the stage made of it; in the last one, its loss


class Stage(Step):
    """One replica of one stage; each iteration of the driver is a round of the first stage."""

    def __init__(self, backend, work):
        flags, device = work.flags, backend.device
        if not flags.pipeline or flags.micro_batches:
            asked = f"--pipeline {list(flags.pipeline)} --micro-batches {flags.micro_batches}"
            raise Refused(f"{asked}; allowed: the replicas of each stage, and whole batches")
        rank = backend.place.rank
        self._place = place = stage_of(rank, flags.pipeline)
        self._backend, self._model, self._iteration = backend, work.model, 0
        self._turns = turns = Turns(place, flags.iterations)
        self._forward_turn = self._backward_turn = 0
        self._in_flight, self._loss = [], None
        self._spare = []  # versions through which nothing goes any more
        self.model_part = f"stage {place.stage}"
        self._who = partial(name_of, pipeline=flags.pipeline)
        self.waits = Waits(self._who(rank))

        cuts = recipe.cuts(work.recipe, flags.pipeline)
        self._network = network = work.model.stage(flags, cuts, place.stage)
        self._names = shares(work.shapes, cuts)[place.stage]
        start(dict(zip(self._names, network.parameters())), work)
        network.to(device, memory_format=torch.channels_last)
        self._weights = list(network.parameters())
        self._owners = [
            (module, key)
            for module in network.modules()
            for key, _ in module.named_parameters(recurse=False)
        ]
        rate = work.rate * turns.share
        self.optimize(work, rate)
        if place.stage:
            self.feed = contract.NoFeed()
        else:
            ready = partial(prepared, network=work.model, device=device)
            readers = place.replica, turns.replicas
            self.feed = contract.Feed(backend, work, readers, prepared=ready)
        self._connect(flags.batch_size)

    def _connect(self, batch_size):
        """Make what connects this rank to others: each rank makes all, in the same order."""
        pipeline, stage = self._place.pipeline, self._place.stage
        self._average = None
        for number, count in enumerate(pipeline):
            group = dist.new_group(list(self._place.ranks_of(number))) if count > 1 else None
            if number == stage and count > 1:
                self._average = Average(self._weights, group, count)
                self._average.watch(self._weights)
        boxes = {}
        for before, form in enumerate(self._forms(batch_size)):
            labels, loss = ((batch_size,), torch.int64), ((), torch.float32)
            for way, forms in (ACTIVATIONS, [form, labels]), (GRADIENTS, [form, loss]):
                groups = self._groups(before)
                if stage in (before, before + 1):
                    kind = Outbox if (stage == before) == (way == ACTIVATIONS) else Inbox
                    new = partial(Parcel, self._backend.device, forms)
                    boxes[kind, way] = kind(new, groups)
        self._from_before = boxes.get((Inbox, ACTIVATIONS))
        self._to_before = boxes.get((Outbox, GRADIENTS))
        self._from_next = boxes.get((Inbox, GRADIENTS))
        self._to_next = boxes.get((Outbox, ACTIVATIONS))

    def _forms(self, batch_size):
        """Size and type of what each stage but the last one gives for a batch."""
        form = None
        for stage in range(len(self._place.pipeline) - 1):
            mine = None
            if self._place.stage == stage:
                if stage:
                    size, kind = form
                    inputs = torch.zeros(1, *size[1:], dtype=kind, device=self._backend.device)
                else:
                    inputs = self.feed.peek()[0][:1]
                self._network.eval()
                with torch.no_grad(), self._mixed:
                    outputs = self._network(inputs)
                self._network.train()
                mine = [*outputs.shape[1:]], str(outputs.dtype).rpartition(".")[2]
            size, kind = self._backend.gather(mine)[self._place.ranks_of(stage)[0]]
            form = (batch_size, *size), getattr(torch, kind)
            yield form

    def _groups(self, before):
        """This rank's partners between a stage and the next one -> the group of the two."""
        one, two = (self._place.pipeline[before + more] for more in (0, 1))
        rank, groups = self._backend.place.rank, {}
        for pair in sorted({(batch % one, batch % two) for batch in range(one * two)}):
            ends = [self._place.ranks_of(before + n)[replica] for n, replica in enumerate(pair)]
            # Of their own, for NCCL does what is asked of one group in one order.
            group = dist.new_group(ends)
            if rank in ends:
                groups[ends[rank == ends[0]]] = group
        return groups

    @property
    def _named(self):
        return dict(zip(self._names, self._weights))

    def without_dropout(self):
        """Of the batches of the first round; each rank has the one that rank 0 reads."""
        losses = []
        self._network.eval()
        for turn in range(self._turns.until(1)):
            batch = self._turns.batch(turn)
            self._expect(batch)
            parcel, inputs, labels = self._arrived(batch, again=True)
            with torch.no_grad(), self._mixed:
                outputs = self._network(inputs)
                if self._place.is_last:
                    losses.append([batch, self._model.loss(outputs, labels).item()])
                else:
                    self._to_next.send(batch, self._rank(1, batch), [outputs, labels])
            if parcel is not None:
                self._from_before.give_back(parcel)
        if not self._place.is_last:
            self._to_next.all_arrived()
        self._network.train()
        of_all = dict(one for some in self._backend.gather(losses) for one in some)
        return of_all[0]

    def begin(self):
        self._expect(self._turns.batch(0))
        if not self._place.is_last:
            self._expect_gradients(0)

    def __call__(self, wanted):
        self._iteration += 1
        self._train(self._turns.until(self._iteration))
        return self._loss

    def finish(self):
        self._train(self._turns.batches)
        for box in (self._to_before, self._to_next):
            if box is not None:
                box.all_arrived()

    def fetch(self, loss):
        return None if loss is None else super().fetch(loss)

    def _train(self, turns):
        """Train until so many batches have gone backward here."""
        while self._backward_turn < turns:
            ahead = min(self._backward_turn + self._turns.depth, self._turns.batches - 1)
            while self._forward_turn <= ahead:
                self._forward()
            self._update(self._backward())

    def _forward(self):
        turn, batch = self._forward_turn, self._turns.batch(self._forward_turn)
        parcel, inputs, labels = self._arrived(batch)
        self._forward_turn += 1
        if self._forward_turn < self._turns.batches:
            self._expect(self._turns.batch(turn + 1))
        wanting = []
        if parcel is not None:
            inputs = inputs.detach().requires_grad_()
            wanting = [inputs]
            # Its sender has gone on to this batch, so it has the gradients of those long before.
            before = self._place.stage - 1
            ahead = (depth(self._place.pipeline, before) + 1) * self._place.pipeline[before]
            self._to_before.arrived(batch - ahead, self._rank(-1, batch))
        with self._mixed:
            outputs = self._network(inputs)
            if self._place.is_last:
                outputs = self._model.loss(outputs, labels)
        if not self._place.is_last:
            self._to_next.send(batch, self._rank(1, batch), [outputs.detach(), labels])
        counts = [weight._version for weight in self._weights]
        self._in_flight.append(Flight(self._weights, counts, parcel, wanting, outputs))

    def _backward(self):
        """The gradients of the oldest batch in flight, averaged over the replicas."""
        turn, batch = self._backward_turn, self._turns.batch(self._backward_turn)
        flight = self._in_flight.pop(0)
        if [weight._version for weight in flight.weights] != flight.counts:
            raise Refused(f"weights have changed since batch {batch} went forward through them")
        self._backward_turn += 1
        outputs, given, came = flight.outputs, None, None
        if self._place.is_last:
            self._loss = outputs.detach()
            outputs = self._scaler.scale(outputs)
        else:
            with self.waits.of(GRADIENTS, self._who(self._rank(1, batch))):
                came = self._from_next.take(batch)
            self._to_next.arrived(batch, self._rank(1, batch))
            if self._backward_turn < self._turns.batches:
                self._expect_gradients(turn + 1)
            given, loss = came.tensors
            self._loss = loss.clone()  # the next one comes to the same place
        gradients = torch.autograd.grad(outputs, [*flight.weights, *flight.inputs], given)
        needed = [self._weights, *(one.weights for one in self._in_flight)]
        if not any(flight.weights is one for one in needed):
            self._spare.append(flight.weights)
        if came is not None:
            self._from_next.give_back(came)
        if flight.parcel is not None:
            *gradients, onwards = gradients
            target = self._rank(-1, batch)
            self._to_before.send(batch, target, [onwards, self._loss])
            self._from_before.give_back(flight.parcel)
        if self._average is None:
            return gradients
        with self.waits.of("replicas", f"the other replicas of {self.model_part}"):
            return self._average.wait()

    def _update(self, gradients):
        """Take a step of the optimizer; batches in flight keep the weights that they came by."""
        if self._in_flight and self._in_flight[-1].weights is self._weights:
            self._renew()
        for weight, gradient in zip(self._weights, gradients):
            weight.grad = gradient
        self._scaler.step(self._optimizer)
        self._scaler.update()
        for group in self._optimizer.param_groups:
            # Fused kernels do not count what they change.
            increment_version(group["params"])
        self._optimizer.zero_grad()

    def _renew(self):
        # New memory would be slower, for its pages have to be fetched.
        room = self._spare.pop() if self._spare else map(torch.empty_like, self._weights)
        room = [one.detach() for one in room]
        with torch.no_grad():
            torch._foreach_copy_(room, self._weights)  # all of them in a few kernels
        news = dict(zip(self._weights, map(nn.Parameter, room)))
        for (module, key), old in zip(self._owners, self._weights):
            setattr(module, key, news[old])
        for group in self._optimizer.param_groups:
            group["params"] = [news[one] for one in group["params"]]
        state = self._optimizer.state
        for old, new in news.items():
            if old in state:
                state[new] = state.pop(old)
        self._weights = list(news.values())
        if self._average is not None:
            self._average.watch(self._weights)

    def _arrived(self, batch, again=False):
        """A batch as it comes to this stage: its parcel, if it came in one, inputs and labels."""
        if not self._place.stage:
            return (None, *(self.feed.peek() if again else next(self.feed)))
        with self.waits.of(ACTIVATIONS, self._who(self._rank(-1, batch))):
            parcel = self._from_before.take(batch)
        return (parcel, *parcel.tensors)

    def _expect(self, batch):
        if self._place.stage:
            self._from_before.expect(batch, self._rank(-1, batch))

    def _expect_gradients(self, turn):
        batch = self._turns.batch(turn)
        self._from_next.expect(batch, self._rank(1, batch))

    def _rank(self, further, batch):
        """Who has a batch in the stage before, -1, or after, 1."""
        ranks = self._place.ranks_of(self._place.stage + further)
        return ranks[batch % len(ranks)]
