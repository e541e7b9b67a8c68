"""Pipelines of stages by torch.distributed.pipelining, which flushes: each step is one of the
gradients of all micro-batches by the weights that it began with. A batch norm sees one micro-batch.
"""

from functools import partial

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.pipelining import PipelineStage, schedules

from trainers.contract import backend as contract
from trainers.contract import settings
from trainers.contract.recipe import cuts
from trainers.contract.stages import micro_batches_of, name_of, shares, stage_of
from trainers.contract.steplog import Refused
from trainers.contract.waiting import OR, Waits
from trainers.frameworks.torch.averaging import Average
from trainers.frameworks.torch.backend import Step, start
from trainers.frameworks.torch.inputs import prepared

SCHEDULES = {
    None: "Schedule1F1B",
    "gpipe": "ScheduleGPipe",
    "interleaved": "ScheduleInterleaved1F1B",
    "zero-bubble": "ScheduleInterleavedZeroBubble",
}
"""What --schedule names; the zero bubble's is ZB1P of its paper, with a stage a rank."""
STAGES_OF_A_RANK = {"interleaved": 2}


class Pipeline(Step):
    """One stage of a pipeline, or several.

    torch knows pipelines of one rank a stage: each replica of the first stage begins one. A stage
    of one replica is in all of them, takes their batches in turn, and updates once.
    """

    def __init__(self, backend, work):
        flags, device = work.flags, backend.device
        self._backend, self._flags = backend, flags
        self._place = place = stage_of(backend.place.rank, flags.pipeline)
        self._replicas = replicas = flags.pipeline[0]
        try:
            self._micro_batches = micro_batches_of(flags)
        except ValueError as error:
            raise Refused(str(error)) from None
        settings.switched("n_microbatches", self._micro_batches)
        # Of two ranks' interleaved stages, the first rank holds the first one and the third.
        stages = flags.pipeline * STAGES_OF_A_RANK.get(flags.schedule, 1)
        cut = cuts(work.recipe, stages)
        numbers = range(place.stage, len(stages), len(flags.pipeline))
        self._modules = nn.ModuleDict(
            {str(number): work.model.stage(flags, cut, number) for number in numbers}
        )
        names = shares(work.shapes, cut)
        self._named = dict(
            zip((name for number in numbers for name in names[number]), self._modules.parameters())
        )
        self.model_part = f"stage {place.stage}"
        self._waits = Waits(name_of(backend.place.rank, flags.pipeline))
        self._beside = ()
        _watch(self._waiting)
        start(self._named, work)
        self._modules.to(device, memory_format=torch.channels_last)
        self.optimize(work, work.rate)
        self._model_loss = work.model.loss
        if place.stage == 0:
            ready = partial(prepared, network=self._modules, device=device)
            self.feed = contract.Feed(backend, work, (place.replica, replicas), ready)
        else:
            self.feed = contract.NoFeed()
        self._labels = torch.empty(flags.batch_size, dtype=torch.int64, device=device)
        self._stages = {
            number: _Stage(module, self._mixed, number == "0")
            for number, module in self._modules.items()
        }
        group, self._members = _groups(place)
        self._sum = group and Average([*self._named.values()], group, 1)
        self._count = len(stages)
        self._pipelines = self._scheduled()

    def _scheduled(self):
        """Each pipeline of this rank: its schedule, its ranks and their group."""
        kind = getattr(schedules, SCHEDULES[self._flags.schedule])
        single = issubclass(kind, schedules.PipelineScheduleSingle)
        # With scale_grads, what several pipelines share would be scaled once for each.
        how = {"loss_fn": self._share_of_loss, "scale_grads": False}
        pipelines = []
        for ranks, group in self._members:
            held = [
                PipelineStage(stage, int(number), self._count, self._backend.device, group=group)
                for number, stage in self._stages.items()
            ]
            schedule = kind(held[0] if single else held, self._micro_batches, **how)
            pipelines.append((schedule, ranks, group))
        return pipelines

    def without_dropout(self):
        self._modules.eval()
        batch = self.feed.peek()
        with torch.no_grad():
            loss = self._through(batch, wanted=True, run="eval").item()
        self._modules.train()
        # Up to torch 2.11 at least, stages that have evaluated first send no gradients afterwards.
        self._pipelines = self._scheduled()
        return loss

    def __call__(self, wanted):
        batch = next(self.feed)
        self._optimizer.zero_grad()
        loss = self._through(batch, wanted)
        if self._sum is not None:
            # Of unequal hybrids, too, the sum: each loss has been divided by all of their batches.
            weights = [*self._named.values()]
            self._sum.add([weight.grad for weight in weights])
            with self._waiting(self._place.ranks_of(self._place.stage)):
                for weight, gradient in zip(weights, self._sum.wait()):
                    weight.grad = gradient
        self._scaler.step(self._optimizer)
        return loss

    def _through(self, batch, wanted, run="step"):
        """Take a batch through each pipeline of this rank; returns their mean loss if wanted."""
        # The last rank computes it, and tells the others of its pipeline.
        means = []
        for schedule, ranks, group in self._pipelines:
            losses, given, sent, target = [], (), None, None
            mine = ranks.index(self._backend.place.rank)
            self._beside = ranks[mine - 1], ranks[(mine + 1) % len(ranks)]
            if self._place.stage == 0:
                samples, labels = batch
                given = (samples,)
                sent = dist.isend(labels, ranks[-1], group)
            elif self._place.is_last:
                target = self._labels
                with self._waiting([ranks[0]]):
                    dist.recv(target, ranks[0], group)
            getattr(schedule, run)(*given, target=target, losses=losses, return_outputs=False)
            if sent is not None:
                sent.wait()
            if wanted:
                mean = torch.zeros((), device=self._labels.device)
                if self._place.is_last:
                    of_all = sum(one.detach() for one in losses) / self._scaler.factor
                    mean += of_all * self._replicas
                with self._waiting([ranks[-1]]):
                    dist.broadcast(mean, ranks[-1], group)
                means.append(mean)
        return sum(means) / len(means) if wanted else None

    def _waiting(self, ranks=None):
        """A context in which this rank waits for some others; left out: for those beside it."""
        others = {*(ranks or self._beside)} - {self._backend.place.rank}
        names = (name_of(rank, self._flags.pipeline) for rank in sorted(others))
        return self._waits.of("stages", OR.join(names))

    def _share_of_loss(self, outputs, labels):
        """What a micro-batch's loss adds to that of all batches of an iteration."""
        with self._mixed:
            loss = self._model_loss(outputs, labels)
        return self._scaler.scale(loss) / (self._micro_batches * self._replicas)


def _watch(waiting):
    """Have torch's schedules wait for other stages inside a context, where its version can."""
    wait = getattr(schedules, "_wait_batch_p2p", None)
    if wait is not None:

        def watched(works):
            with waiting():
                wait(works)

        schedules._wait_batch_p2p = watched


class _Stage(nn.Module):
    """A stage that computes in the precision of the run.

    torch sends no tensor whose channels come last in memory: stages send [N, H, W, C] instead.
    """

    def __init__(self, module, mixed, is_first):
        super().__init__()
        self.module, self._mixed, self._is_first = module, mixed, is_first

    def forward(self, x):
        if x.dim() == 4 and not self._is_first:
            x = x.permute(0, 3, 1, 2)
        with self._mixed:
            x = self.module(x)
        return x.permute(0, 2, 3, 1).contiguous() if x.dim() == 4 else x


def _groups(place):
    """The group of a rank's replicas, None if it has none, and its pipelines' ranks and groups."""
    # All ranks make all groups, in the same order.
    replicas = place.pipeline[0]
    stages = [place.ranks_of(number) for number in range(len(place.pipeline))]
    own = None
    for number, ranks in enumerate(stages):
        if len(ranks) > 1:
            group = dist.new_group(list(ranks))
            own = group if number == place.stage else own
    pipelines = []
    for number in range(replicas):
        ranks = [of[number % len(of)] for of in stages]
        group = dist.new_group(ranks)
        if len(stages[place.stage]) == 1 or place.replica == number:
            pipelines.append((ranks, group))
    return own, pipelines
