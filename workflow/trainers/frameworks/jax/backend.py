"""JAX for trainers.contract.driver: one process per device, started by trainers.launchers.ranks.

A model is made from the flags and the data type in which it computes. It takes weights and arrays
of this rank's own, such as batch norms' averages, both by name, a key of random numbers (None:
nothing drops out) and a batch, and returns its mean loss and the new arrays. They begin as its
start_state() has them. Weights of convolutions are [height, width, in, out].
"""

import os
import pickle
from functools import partial

import jax
import jax.numpy as jnp
import jaxlib
import numpy as np
from jax import lax
from jax.experimental.serialize_executable import deserialize_and_load, serialize
from jax.flatten_util import ravel_pytree
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from trainers.contract import backend as contract
from trainers.contract import process, settings
from trainers.contract.compilers import compiled_before
from trainers.contract.ports import address_towards
from trainers.contract.precision import halves
from trainers.contract.steplog import Refused
from trainers.frameworks.jax.optimizers import optimizer_of

RANKS = "ranks"
OWN, ALL = PartitionSpec(RANKS), PartitionSpec()
"""How an array lies on the devices: each has a part of its own, or all have the same."""


class Backend(contract.Backend):
    # On a CPU bfloat16 gains nothing, but XLA has it.
    computes = {"cpu": ("bfloat16",), "cuda": ("float16", "bfloat16", "tf32")}

    def __init__(self, flags, place):
        super().__init__(flags, place)
        jax.config.update("jax_platforms", flags.device)
        name = "jax_default_matmul_precision"
        jax.config.update(name, settings.switched(name, precision_of_products(flags)))
        self._compiled = compiled_before(flags, place.rank)
        if self._compiled:
            there = os.path.exists(self._compiled)
            settings.switched("compiled", "by an earlier repeat" if there else "here")
        if flags.device == "cuda":
            jax.config.update("jax_cuda_visible_devices", str(place.local_rank))
        if place.world_size > 1:
            self.library = self._connect()
        self.device, devices = self._devices()
        if flags.device == "cuda":
            self.device_name = self.device.device_kind
        self._mesh = Mesh(np.array(devices), (RANKS,))
        self._newest = None
        self._add_up = self.mapped(lambda own: lax.psum(own, RANKS), OWN, ALL)
        # Gloo connects in the first collective: a rank that compiles for longer would be late.
        self.gather(place.rank)

    def _connect(self):
        """Meet the other ranks, within JAX's five minutes."""
        # One that is silent for 100 seconds, by JAX's own clock, ends all of them.
        on_cpu = self.flags.device == "cpu"
        host, port = os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"]
        if on_cpu:
            _listen_towards(host, int(port))
        # Slurm's variables are of another launch.
        how = {"cluster_detection_method": "deactivate"}
        how["local_device_ids"] = None if on_cpu else [self.place.local_rank]
        jax.distributed.initialize(f"{host}:{port}", self.place.world_size, self.place.rank, **how)
        return "gloo" if on_cpu else "NCCL"

    def _devices(self):
        try:
            (own,), devices = jax.local_devices(), jax.devices()
        except (RuntimeError, AssertionError) as error:  # without any GPU JAX only asserts
            if self.flags.device == "cpu":
                raise
            why = f": {error}".splitlines()[0] if str(error) else ""
            what = f"jax finds no GPU for local rank {self.place.local_rank}"
            allowed = "a build for GPUs, such as the lock envs/jax.cuda.txt, on GPUs"
            raise Refused(f"{what}; allowed: {allowed}{why}") from None
        return own, devices

    def mapped(self, function, ins, outs, **settings):
        """A function of what each rank has, compiled; `ins` and `outs` are OWN or ALL, for each."""
        # Its default, check_vma, would add up the gradients of what ranks share before we do.
        how = {"mesh": self._mesh, "in_specs": ins, "out_specs": outs, "check_vma": False}
        return jax.jit(jax.shard_map(function, **how), **settings)

    def compiled(self, function, given, name=""):
        """A function of `mapped`, compiled for such arguments, or as another repeat compiled it."""
        # JAX's own cache keeps nothing for ranks but the first.
        path = self._compiled and self._compiled + name
        if path and os.path.exists(path):
            with open(path, "rb") as stream:
                # Of this call's own, which nobody else writes.
                return deserialize_and_load(*pickle.load(stream))
        found = function.lower(*given).compile()
        if path:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            partial_path = f"{path}.{os.getpid()}"
            with open(partial_path, "wb") as stream:
                pickle.dump(serialize(found), stream)
            os.replace(partial_path, path)
        return found

    def spread(self, array, how=OWN):
        """This rank's array on its device, as a part of one of all ranks, or as what all have."""
        return jax.make_array_from_process_local_data(NamedSharding(self._mesh, how), array)

    # Of each such array there is a row for each rank. JAX has no int64 unless it is asked for.
    def numbers(self, array):
        with jax.enable_x64(array.dtype == np.int64):
            return self.spread(array[None]).block_until_ready()

    def array(self, numbers):
        return np.asarray(numbers.addressable_data(0))[0]

    def all_reduce(self, numbers):
        with jax.enable_x64(numbers.dtype == np.int64):
            return self._add_up(numbers).block_until_ready()

    def versions(self):
        return {"jax": jax.__version__, "jaxlib": jaxlib.__version__}

    def peak_memory(self):
        stats = self.device.memory_stats()  # None of a CPU
        return stats["peak_bytes_in_use"] if stats else process.peak_memory()

    def mark(self):
        newest = self._newest
        return contract.idle_since(lambda: newest is None or newest.is_ready())

    def queued(self, array):
        """The same array, remembered as the newest that the device will have made."""
        self._newest = array
        return array

    def put(self, batch):
        arrays = map(np.asarray, batch)  # JAX has int32 labels and the like
        return [self.spread(a.astype(np.int32) if a.dtype == np.int64 else a) for a in arrays]

    def step(self, work):
        return DataParallel(self, work)

    def disconnect(self):
        if self.place.world_size > 1:
            jax.distributed.shutdown()  # which waits for all ranks


def precision_of_products(flags):
    """JAX's word for the precision of matrix products and convolutions."""
    # By itself JAX takes TF32 on a GPU. What is computed in 16 bits has one precision alone, and
    # asking for the highest would forbid XLA its fused products.
    if halves(flags):
        return "default"
    return "tensorfloat32" if flags.precision == "tf32" else "highest"


class Step(contract.Step):
    """What all ways to train have in common: `_iterate`, a program of a whole iteration."""

    _iteration = 0

    def __init__(self, backend, work):
        self._backend, self._flags, self._state = backend, work.flags, {}
        self._model = work.model(work.flags, np.dtype(work.precision.dtype))
        self._scale = work.precision.factor
        self._update, self._moment_count = optimizer_of(work)

    def _given(self, batches):
        # The seed is no constant of the program: repeats share that.
        numbers = np.array(self._flags.seed).astype(np.int32), np.int32(self._iteration)
        return self._weights, self._moments, self._state, numbers, batches

    def begin(self):
        given = self._given([self.feed.peek()] * self._flags.accumulation)
        self._iterate = self._backend.compiled(self._iterate, given)

    def __call__(self, wanted):
        self._iteration += 1
        batches = [next(self.feed) for _ in range(self._flags.accumulation)]
        # Weights, moments and state are overwritten where they lie.
        self._weights, self._moments, self._state, loss = self._iterate(*self._given(batches))
        return self._backend.queued(loss)

    def fetch(self, loss):
        jax.block_until_ready(self._weights)
        return float(loss.addressable_data(0)[0])


class DataParallel(Step):
    """The whole model on each rank, gradients averaged, all in one program for the device."""

    accumulates = True

    def __init__(self, backend, work):
        super().__init__(backend, work)
        self.feed = contract.Feed(backend, work)
        own = getattr(self._model, "start_state", dict)()
        self._state = {name: backend.spread(array[None]) for name, array in own.items()}
        self._weights = {n: backend.spread(_turned(work.start(n)), ALL) for n in work.shapes}
        # Zeros of its own for each: JAX may take memory as it is, and moments are overwritten.
        sizes = {n: weight.shape for n, weight in self._weights.items()}
        self._moments = [
            {n: backend.spread(np.zeros(size, np.float32), ALL) for n, size in sizes.items()}
            for _ in range(self._moment_count)
        ]
        self._iterate = backend.mapped(
            self._one, (ALL, ALL, OWN, ALL, OWN), (ALL, ALL, OWN, OWN), donate_argnums=(0, 1, 2)
        )

    def _one(self, weights, moments, state, numbers, batches):
        gradients, loss, after = self._gradients(weights, state, numbers, batches)
        gradients = self._averaged(gradients)
        weights, moments = self._update(weights, moments, gradients, numbers[1])
        return weights, moments, {name: one[None] for name, one in after.items()}, loss[None]

    def _gradients(self, weights, state, numbers, batches):
        """This rank's gradients and loss, and its arrays afterwards."""
        seed, iteration = numbers
        # The device's own generator: JAX's usual one takes longer, to compile, too.
        key = jax.random.key(seed, impl="rbg")
        key = jax.random.fold_in(jax.random.fold_in(key, lax.axis_index(RANKS)), iteration)

        def scaled(weights, state, key, batch):
            loss, after = self._model(weights, state, key, *batch)
            return loss * self._scale, (loss, after)

        of_batch = partial(jax.grad(scaled, has_aux=True), weights)
        if len(batches) == 1:
            gradients, (loss, after) = of_batch(_own(state), key, batches[0])
        else:
            zeros = jax.tree.map(jnp.zeros_like, weights)
            gradients, (loss, after) = _of_all(of_batch, zeros, _own(state), key, batches)
        return gradients, loss, after

    def _averaged(self, gradients):
        """The means of all ranks' gradients."""
        split = dict  # NCCL's calls are joined by XLA
        if self._backend.library == "gloo":  # takes some milliseconds for a tensor, however small
            gradients, split = ravel_pytree(gradients)
        return split(jax.tree.map(lambda one: lax.pmean(one, RANKS), gradients))

    def weights(self):
        return ((name, one.addressable_data(0)) for name, one in self._weights.items())

    def without_dropout(self):
        def judged(weights, state, batch):
            return self._model(weights, _own(state), None, *batch)[0][None]

        judge = self._backend.mapped(judged, (ALL, OWN, OWN), OWN)
        return self.fetch(judge(self._weights, self._state, self.feed.peek()))

    def alone(self):
        def own_gradients(*given):
            return jax.tree.map(lambda one: one[None], self._gradients(*given))

        once = self._backend.mapped(own_gradients, (ALL, OWN, ALL, OWN), OWN)
        weights, _, *given = self._given([next(self.feed)])
        given = weights, *given
        once = self._backend.compiled(once, given, "-alone")
        return contract.seconds_alone(lambda: jax.block_until_ready(once(*given)))


def _of_all(of_batch, zeros, state, key, batches):
    """The means of several batches' gradients and losses, one after the other: as of_batch's."""

    def add(sums, batch):
        summed, state = sums
        number, *batch = batch
        gradients, (loss, after) = of_batch(state, jax.random.fold_in(key, number), batch)
        return (jax.tree.map(jnp.add, summed, gradients), after), loss

    count = len(batches)
    numbered = [jnp.arange(count), *map(jnp.stack, zip(*batches, strict=True))]
    (summed, after), losses = lax.scan(add, (zeros, state), numbered)
    return jax.tree.map(lambda one: one / count, summed), (losses.mean(), after)


def _own(state):
    return {name: one[0] for name, one in state.items()}


def _turned(array):
    return array.transpose(2, 3, 1, 0) if array.ndim == 4 else array


def _listen_towards(host, port):
    """Let gloo listen where the first rank is reached from, for which JAX has no setting."""
    # Of its own it takes the address of the host's name, which no other node may reach.
    from jax._src.lib import _jax  # noqa: PLC0415

    address = address_towards(host, port)
    _jax.make_gloo_tcp_collectives = partial(_jax.make_gloo_tcp_collectives, hostname=address)
