"""What is asked of Horovod, whatever the framework, before it connects the ranks."""

from trainers.contract.steplog import Refused


def check_horovod(horovod, flags, world_size):
    """Refuse a build that would average GPUs' gradients through the machine's memory.

    Args:
        horovod: the framework's module, such as horovod.tensorflow.
        flags: what parse_flags returned.
        world_size: number of ranks.

    Raises:
        Refused: it was built without NCCL.
    """
    if flags.device == "cuda" and world_size > 1 and not horovod.nccl_built():
        raise Refused("Horovod is built without NCCL; allowed on GPUs: a build with it")
