"""What is asked of Horovod, whatever the framework, before it connects the ranks."""

from trainers.contract.build import nccl_as_written
from trainers.contract.steplog import Refused


def check_horovod(horovod, flags, world_size):
    """Refuse a build whose ranks cannot meet, or average gradients through the machine's memory."""
    if not horovod.gloo_built():
        raise Refused("Horovod is built without gloo; allowed: a build with it")
    if flags.device == "cuda" and world_size > 1 and not horovod.nccl_built():
        raise Refused("Horovod is built without NCCL; allowed on GPUs: a build with it")


def connected(horovod, flags, world_size):
    """Connect the ranks, as check_horovod has them; returns what adds up numbers of theirs."""
    check_horovod(horovod, flags, world_size)
    horovod.init()
    if flags.device == "cuda" and horovod.nccl_built():
        return f"NCCL {nccl_as_written(horovod.nccl_built())} (Horovod)"
    return "gloo (Horovod)" if horovod.gloo_enabled() else "MPI (Horovod)"
