"""Training in JAX with weights, gradients and moments spread over ranks, as NamedSharding says.

Model and optimizer are those of one device: XLA divides the work. A rank makes its own part alone.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from trainers.contract import backend as contract
from trainers.contract.grid import grid_of
from trainers.contract.weights import digest
from trainers.frameworks.jax.backend import Step

DATA = ("replicate", "shard")
BATCH, ALL = PartitionSpec(DATA), PartitionSpec()
ROWS, COLUMNS = PartitionSpec("tensor", "shard"), PartitionSpec("shard", "tensor")
"""How ranks share a matrix: its layer's ranks have its rows, or its columns."""


class Spread(Step):
    """Parts of layers over --tensor ranks, shares of these over --shard ranks."""

    def __init__(self, backend, work):
        super().__init__(backend, work)
        self._work, self._grid = work, grid_of(work, backend.place)
        devices = np.array(jax.devices()).reshape(self._grid.sizes)
        self._mesh = Mesh(devices, (*DATA, "tensor"))
        self.model_part = self._grid.part
        backend.put = self._put
        self.feed = contract.Feed(backend, work, self._grid.share, counts=self._grid.counts)
        self._how = {n: self._placed(spec_of(n, size)) for n, size in work.shapes.items()}
        self._weights = {
            name: jax.make_array_from_callback(work.shapes[name], how, partial(self._part_of, name))
            for name, how in self._how.items()
        }
        zeros = jax.jit(
            lambda: {n: jnp.zeros(size, jnp.float32) for n, size in work.shapes.items()},
            out_shardings=self._how,
        )
        self._moments = [zeros() for _ in range(self._moment_count)]
        outs = self._how, [self._how] * self._moment_count, {}, self._placed(ALL)
        self._iterate = jax.jit(self._one, donate_argnums=(0, 1), out_shardings=outs)

    def _placed(self, spec):
        return NamedSharding(self._mesh, spec)

    def _put(self, batch):
        """A batch as a part of that of all ranks together."""
        arrays, how = (np.asarray(one).astype(np.int32) for one in batch), self._placed(BATCH)
        return [jax.make_array_from_process_local_data(how, one) for one in arrays]

    def _part_of(self, name, index):
        size = self._work.shapes[name]
        ranges = (one.indices(extent)[:2] for one, extent in zip(index, size, strict=True))
        return self._work.start(name, tuple(slice(*each) for each in ranges))

    def _one(self, weights, moments, state, numbers, batches):
        def scaled(weights):
            loss, _ = self._model(weights, state, None, *batches[0])
            return loss * self._scale, loss

        gradients, loss = jax.grad(scaled, has_aux=True)(weights)
        gradients = jax.lax.with_sharding_constraint(gradients, self._how)
        weights, moments = self._update(weights, moments, gradients, numbers[1])
        return weights, moments, state, loss[None]  # XLA's one loss, the mean of all readers

    def finish(self):
        norms = (one for n, one in self._weights.items() if self._how[n].spec == ALL)
        own = digest(np.asarray(one.addressable_data(0)) for one in norms)
        self._grid.check_alike(self._backend.gather(own))

    def weights(self):
        """Those whose parts are this rank's to count: of norms, that all have, one rank's."""
        first = self._grid.counts and self._grid.shard_rank == 0
        for name, weight in self._weights.items():
            if first or self._how[name].spec != ALL:
                yield name, weight.addressable_data(0)


def spec_of(name, size):
    """How ranks share a weight: a matrix by rows or by columns, a norm whole."""
    if len(size) == 1:
        return ALL
    return COLUMNS if name.endswith(".out.weight") else ROWS
