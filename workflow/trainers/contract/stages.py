"""How ranks share a model: who reads batches, and who holds which stage of a pipeline.

Of a pipeline of (7, 1), ranks 0 to 6 hold the first stage.
"""

from typing import NamedTuple, Tuple


class Stage(NamedTuple):
    """Where a rank stands in a pipeline."""

    stage: int  # which it holds, from 0
    replica: int  # which of the stage's it is, from 0
    pipeline: Tuple[int, ...]  # the replicas of each stage

    @property
    def is_last(self):
        return self.stage == len(self.pipeline) - 1

    def ranks_of(self, stage):
        first = sum(self.pipeline[:stage])
        return range(first, first + self.pipeline[stage])


def stage_of(rank, pipeline):
    stage = 0
    while rank >= pipeline[stage]:
        rank -= pipeline[stage]
        stage += 1
    return Stage(stage, rank, tuple(pipeline))


def name_of(rank, pipeline=()):
    """What logs call a rank: "rank 2", or of a pipeline "rank 2 (stage 1)"."""
    return f"rank {rank}" + (f" (stage {stage_of(rank, pipeline).stage})" if pipeline else "")


def readers_of(flags, world_size):
    """How many ranks read batches of their own; ValueError: so many cannot share the work so."""
    together = (flags.tensor or 1) * (flags.shard or 1)
    if sum(flags.pipeline or [world_size]) != world_size or world_size % together:
        asked = {name: getattr(flags, name) for name in ("pipeline", "tensor", "shard")}
        raise ValueError(f"{world_size} ranks for {asked}")
    return flags.pipeline[0] if flags.pipeline else world_size // (flags.tensor or 1)


def micro_batches_of(flags):
    """The micro-batches of a pipeline that flushes: as many as asked, or up to four for each stage.

    With M micro-batches, S stages stand idle for (S - 1) / (M + S - 1) of the time. ValueError: a
    batch cannot be cut into that many.
    """
    usual = (each * len(flags.pipeline) for each in (4, 3, 2, 1))
    for count in [flags.micro_batches] if flags.micro_batches else usual:
        if flags.batch_size % count == 0:
            return count
    cut = f"a batch of {flags.batch_size} cannot be cut into {count} micro-batches"
    raise ValueError(f"{cut}; allowed: multiples of {count}")


def shares(names, cuts):
    """The names of a model's weights, in the recipe's order: a list for each stage."""
    names = list(names)
    begins = [0, *map(names.index, cuts), len(names)]
    return [names[begin:end] for begin, end in zip(begins, begins[1:])]
