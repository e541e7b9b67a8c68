"""How ranks share a model's weights and layers: replicas x shard x tensor, of which tensor ranks
follow each other.
"""

from typing import NamedTuple

from trainers.contract.recipe import why_undivided
from trainers.contract.steplog import Refused


class Grid(NamedTuple):
    rank: int
    replicas: int
    shard: int  # over how many ranks each part of the weights is spread until it is needed
    tensor: int  # over how many ranks each layer is spread; they read the same batches

    @property
    def sizes(self):
        return self[1:]

    @property
    def shard_rank(self):
        return self.rank // self.tensor % self.shard

    @property
    def share(self):
        """Which reader this rank is, and how many there are."""
        return self.rank // self.tensor, self.replicas * self.shard

    @property
    def counts(self):
        """Whether this rank counts batches, and the weights that all ranks of a layer have."""
        return self.rank % self.tensor == 0

    @property
    def part(self):
        return f"shard {self.shard_rank} tensor {self.rank % self.tensor}"

    def check_alike(self, gathered):
        """Refuse ranks of a layer whose common weights differ, such as norms."""
        for rank, found in enumerate(gathered):
            first = rank - rank % self.tensor
            if found != gathered[first]:
                both = f"rank {rank} and rank {first}"
                raise Refused(f"{both} share layers, and their norms differ at the end")


def grid_of(work, place):
    shard, tensor = work.flags.shard or 1, work.flags.tensor or 1
    replicas, rest = divmod(place.world_size, shard * tensor)
    if rest:
        raise Refused(f"{place.world_size} ranks; allowed: multiples of {shard * tensor}")
    reason = why_undivided(work.recipe, work.flags.shape, shard=shard, tensor=tensor)
    if reason:
        raise Refused(reason)
    return Grid(place.rank, replicas, shard, tensor)
