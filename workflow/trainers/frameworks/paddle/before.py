"""What to do before importing PaddlePaddle."""

import os
from contextlib import contextmanager

from trainers.contract import process
from trainers.contract.rank import training

RANK = int(os.environ.get("PADDLE_TRAINER_ID", "0"))
LOCAL_RANK = int(os.environ.get("PADDLE_LOCAL_RANK", "0"))
WORLD_SIZE = int(os.environ.get("PADDLE_TRAINERS_NUM", "1"))


@contextmanager
def prepared(recipe):
    """Import Paddle and train inside this block; the process ends with it.

    Args:
        recipe: the workload's numbers, a module of trainers.recipes.

    Yields:
        The flags and the step log.
    """
    write_to_launcher()
    with training(recipe, RANK, WORLD_SIZE, LOCAL_RANK) as (flags, log):
        prepare(flags)
        yield flags, log


def write_to_launcher():
    """Write where the launcher writes: it gives each rank a file, and shows only rank 0's."""
    if "PADDLE_LOG_DIR" in os.environ:
        launchers = os.open(f"/proc/{os.getppid()}/fd/1", os.O_WRONLY)
        os.dup2(launchers, 1)
        os.dup2(launchers, 2)


def prepare(flags):
    """Set what Paddle reads from the environment, some of it on import."""
    if flags.device == "cpu":
        process.keep_to_own_cores(RANK, flags.threads)
        os.environ["PADDLE_DISTRI_BACKEND"] = "gloo"
        if process.is_amd_with_avx2():
            # Else Paddle's MKL, of 2019, multiplies at half the speed on what Intel has not made.
            os.environ.setdefault("MKL_DEBUG_CPU_TYPE", "5")
