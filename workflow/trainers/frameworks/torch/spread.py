"""Training by fully_shard (FSDP2) and parallelize_module; each rank makes its part of the weights.

A model has `layers`, says by spread_over(mesh) how they are spread over ranks, and fills in by
fill_buffers() what is no weight.
"""

from contextlib import ExitStack, nullcontext

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.distributed.tensor import DTensor, Shard
from torch.distributed.tensor._utils import compute_local_shape_and_global_offset
from torch.distributed.tensor.parallel import loss_parallel
from torch.utils import checkpoint

from trainers.contract.grid import grid_of
from trainers.contract.precision import halves
from trainers.contract.steplog import Refused
from trainers.contract.weights import digest
from trainers.frameworks.torch.backend import DataParallel, network_of


class Spread(DataParallel):
    """This rank's part of all weights: of --tensor ranks' layers, of --shard ranks' shares.

    In 16 bits features are so throughout, also on one rank; gradients are added up in float32.
    """

    accumulates = False
    pass_alone = None

    def __init__(self, backend, work):
        self._backend, self._grid = backend, grid_of(work, backend.place)
        self._share, self._counts = self._grid.share, self._grid.counts
        self.model_part = self._grid.part
        if self._grid.tensor > 1 and work.flags.compile and work.flags.recompute:
            raise Refused("--tensor, --compile and --recompute; allowed: two of them")
        if self._grid.tensor > 1 and work.precision.compute == "float8":
            raise Refused("--tensor and --precision fp8; allowed: one of them")
        if not dist.is_initialized():  # of one rank
            name = "gloo" if backend.device.type == "cpu" else "nccl"
            dist.init_process_group(name, store=dist.HashStore(), rank=0, world_size=1)
        self._to_the_end = ExitStack()
        if self._grid.tensor > 1:
            # No rank has a whole row of logits, not even in the backward pass.
            self._to_the_end.enter_context(loss_parallel())
        super().__init__(backend, work)
        self._mixed = nullcontext()  # 16-bit numbers are fully_shard's

    def build(self, work, backend):
        flags = work.flags
        # fully_shard always has its dimension, so that 16-bit computation is always the same.
        sizes = dict(zip(("replicate", "shard", "tensor"), self._grid.sizes))
        names = tuple(name for name, size in sizes.items() if size > 1 or name == "shard")
        extents = tuple(map(sizes.get, names))
        mesh = init_device_mesh(backend.device.type, extents, mesh_dim_names=names)
        with torch.device("meta"):
            network = network_of(work)
        layers = list(network.layers)
        if flags.recompute:
            for layer in layers:
                layer.forward = _recomputed(layer.forward, keep=flags.recompute == "some")
        if self._grid.tensor > 1:
            network.spread_over(mesh["tensor"])
        if flags.compile:
            for layer in layers:
                layer.compile()
        how = {"mesh": mesh[tuple(name for name in names if name != "tensor")]}
        if halves(flags):
            # The model's arguments, such as cosines, stay as they are.
            how["mp_policy"] = MixedPrecisionPolicy(
                param_dtype=getattr(torch, work.precision.dtype),
                reduce_dtype=torch.float32,
                cast_forward_inputs=False,
            )
        for part in (*layers, network):
            fully_shard(part, **how)
        network.to_empty(device=backend.device)
        network.fill_buffers()
        with torch.no_grad():
            for name, weight in work.named(network.parameters()).items():
                held = self.held(weight)
                if held.numel():
                    held.copy_(torch.from_numpy(work.start(name, _index_of(weight))))
        return network, network

    def compiled(self):
        return self._model  # its layers are compiled

    def finish(self):
        alike = (self.held(one.detach()) for one in self._named.values() if not _is_divided(one))
        own = digest(one.cpu().numpy() for one in alike)
        self._grid.check_alike(self._backend.gather(own))

    def weights(self):
        """Those whose parts are this rank's to count: of what all have alike, one does."""
        for name, one in self._named.items():
            if self._counts or _is_divided(one):
                yield name, self.held(one.detach())

    held = staticmethod(DTensor.to_local)


def _is_divided(weight):
    """Whether the ranks of a layer have different parts of it."""
    names, last = weight.device_mesh.mesh_dim_names, weight.placements[-1]
    return names[-1] == "tensor" and isinstance(last, Shard)


def _index_of(weight):
    """Which part of the whole this rank holds: a slice for each dimension."""
    sizes, first = compute_local_shape_and_global_offset(
        weight.shape, weight.device_mesh, weight.placements
    )
    return tuple(slice(at, at + size) for at, size in zip(first, sizes))


_KEPT = {
    getattr(torch.ops.aten, name).default
    for name in (
        "mm",
        "_scaled_mm",
        "amax",
        "_scaled_dot_product_flash_attention",
        "_scaled_dot_product_flash_attention_for_cpu",
        "_scaled_dot_product_efficient_attention",
        "_scaled_dot_product_cudnn_attention",
    )
}
"""What a selective recomputation keeps: products and attention, which take longest, and the
greatest values, by which float8 scales."""


def _recomputed(forward, keep):

    def policy(context, operation, *args, **kwargs):
        ways = checkpoint.CheckpointPolicy
        return ways.MUST_SAVE if operation in _KEPT else ways.PREFER_RECOMPUTE

    def contexts():
        return checkpoint.create_selective_checkpoint_contexts(policy)

    how = {"context_fn": contexts} if keep else {}

    def recomputed(*args):
        return checkpoint.checkpoint(forward, *args, use_reentrant=False, **how)

    return recomputed
