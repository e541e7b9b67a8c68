"""Data parallel training by torch's fully_shard (FSDP2): a layer is whole while it computes."""

import ctypes
from itertools import chain

import torch
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.nn.modules.batchnorm import _BatchNorm

from trainers.contract.recipe import AdamW
from trainers.frameworks.torch.backend import DataParallel, torch_optimizer

_MMAP_THRESHOLD = -3  # M_MMAP_THRESHOLD of malloc.h


class Sharded(DataParallel):
    """This rank's shares of all weights, over --shard ranks; each such group has all of the model.

    It divides a weight by rows, of which a rank may have none.
    """

    accumulates = False
    pass_alone = None

    def spread(self, network, backend):
        rank, _, world_size = backend.place
        if world_size == 1:
            return super().spread(network, backend)
        if backend.device.type == "cpu":
            _return_freed_memory()
        shard = backend.flags.shard or world_size
        self.model_part = f"shard {rank % shard}"
        # The last dimension is the one that shards; gradients are averaged over both.
        sizes = (shard,) if shard == world_size else (world_size // shard, shard)
        names = ("replicate", "shard")[-len(sizes) :]
        mesh = init_device_mesh(backend.device.type, sizes, mesh_dim_names=names)
        # What stands in a row is whole one at a time, the rest for all of a step. torch shards no
        # weights whose channels are last; features are so all the same.
        kinds = nn.Sequential, nn.ModuleList
        rows = (row for row in network.children() if isinstance(row, kinds))
        layers = [one for one in chain.from_iterable(rows) if any(True for _ in one.parameters())]
        travel = {"mesh": mesh, "mp_policy": _policy(network, self._dtype)}
        for layer in layers:
            if backend.flags.compile:
                layer.compile()  # by itself: gathering its weights cannot be in a graph
            fully_shard(layer, **travel)
        return fully_shard(network, **travel)

    def compiled(self):
        return self._model if self.model_part != "all" else super().compiled()

    @staticmethod
    def held(weight):
        return weight.to_local() if hasattr(weight, "to_local") else weight


def _policy(network, dtype):
    """The types in which weights are sent and gradients are averaged.

    In 16 bits a layer's weights need no cast; but batch norms want float32 ones.
    """
    batch_norms = any(isinstance(one, _BatchNorm) for one in network.modules())
    if dtype == torch.float32 or batch_norms:
        return MixedPrecisionPolicy()
    return MixedPrecisionPolicy(param_dtype=dtype, reduce_dtype=torch.float32)


def _return_freed_memory():
    """Have glibc give back each freed piece of a megabyte or more: layers would seem kept whole."""
    # It raises that limit to 32 MB by itself, and keeps what is below. Other libraries of C: as is.
    allocator = ctypes.CDLL(None)
    if hasattr(allocator, "mallopt"):
        allocator.mallopt(_MMAP_THRESHOLD, 1 << 20)


def optimizer(groups, rate, asked):
    """torch's own; of shares torch 2.13 has AdamW in one kernel, and not SGD."""
    return torch_optimizer(groups, rate, asked, fused=isinstance(asked, AdamW))
