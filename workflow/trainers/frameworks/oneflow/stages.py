"""A pipeline in OneFlow: one graph whose layers lie, stage by stage, on devices of their own.

All micro-batches pass all stages before the weights change. Two stages on the same devices would
silently be one.
"""

import copy

import oneflow as flow
from oneflow import nn
from oneflow.nn.graph import GraphModule

from trainers.contract.recipe import cuts
from trainers.contract.stages import name_of, shares, stage_of
from trainers.contract.waiting import OR, Waits
from trainers.frameworks.oneflow import backend
from trainers.frameworks.oneflow.inputs import fixed_batch


class Pipeline(backend.DataParallel):
    """A stage on its replicas, which split each micro-batch; the first one's read it."""

    def __init__(self, backend, work):
        flags, pipeline, rank = work.flags, work.flags.pipeline, backend.place.rank
        own = stage_of(rank, pipeline)
        stages = [list(own.ranks_of(stage)) for stage in range(len(pipeline))]
        placements = [flow.placement(flags.device, ranks=ranks) for ranks in stages]
        self.model_part = f"stage {own.stage}"
        self._waits = Waits(name_of(rank, pipeline))
        others = (one for one in range(sum(pipeline)) if one != rank)
        self._others = OR.join(name_of(one, pipeline) for one in others)
        self.feed, self._reads, self._counts = self, flags.input != "synthetic", {}
        micro = copy.copy(flags)
        micro.batch_size //= flags.micro_batches or len(pipeline)
        batches, self._batch = None, ()
        if self._reads:
            batches = work.batches(micro, rank, len(stages[0]), stages[0])
        else:
            # What a graph is given it cuts into micro-batches; a fixed one it would repeat.
            self._batch = fixed_batch(work.recipe, flags, rank, placements[0])
        model = work.model(flags)
        backend.start(work, model)
        begins = cuts(work.recipe, pipeline)
        modules = [Stage(layers) for layers in model.stages(begins)]
        for module, placement in zip(modules, placements):
            module.to_global(placement, flow.sbp.broadcast)
        named = work.named(weight for module in modules for weight in module.parameters())
        self._named = {name: named[name] for name in shares(named, begins)[own.stage]}
        self._iterate = Training(work, Staged(model, modules, placements), batches, named)
        self._everywhere = flow.placement.all(flags.device)

    def without_dropout(self):
        raise NotImplementedError("a model in stages that drops features out")

    def __call__(self, wanted):
        losses, _ = self._iterate(*self._batch)
        return losses

    def fetch(self, losses):
        with self._waits.of("stages", self._others):
            backend.wait()
        return losses.to_global(self._everywhere, flow.sbp.broadcast).numpy().mean().item()


class Stage(nn.Module):
    """Layers one after another, of which the first may take several tensors."""

    def __init__(self, layers):
        super().__init__()
        self.layers = nn.ModuleList(layers)

    def forward(self, *tensors):
        for layer in self.layers:
            tensors = (layer(*tensors),)
        return tensors[0]


class Staged(nn.Module):
    """A model's stages, one after another, each where it lies."""

    def __init__(self, model, stages, placements):
        super().__init__()
        self._losses, self.placements = model.losses, placements
        self.stages = nn.ModuleList(stages)

    def forward(self, images, labels, *mirrored):
        x = (images, *mirrored)
        for stage, placement in zip(self.stages, self.placements):
            x = (stage(*(one.to_global(placement, flow.sbp.split(0)) for one in x)),)
        return self._losses(*x, labels.to_global(self.placements[-1], flow.sbp.split(0)))


class Training(backend.Training):
    """Each call trains on one batch, in micro-batches that follow each other through the stages."""

    def __init__(self, work, model, batches, weights):
        super().__init__(work, model, batches, backend.make_optimizer(work, weights))
        for number, stage in enumerate(self.model.stages):
            stage.to(GraphModule).set_stage(number, model.placements[number])
        flags = work.flags
        self.config.set_gradient_accumulation_steps(flags.micro_batches or len(flags.pipeline))
