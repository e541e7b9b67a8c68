"""What to know and to do before importing PaddlePaddle."""

import os

from trainers.contract import process, settings
from trainers.contract.backend import place_in

HAS_SERVERS = "SERVERS" in os.environ
"""Whether trainers.launchers.roles has started it, and not Paddle's own launcher."""
_NAMES = "PADDLE_TRAINER_ID", "PADDLE_LOCAL_RANK", "PADDLE_TRAINERS_NUM"
PLACE = place_in(*(("RANK", "LOCAL_RANK", "WORLD_SIZE") if HAS_SERVERS else _NAMES))

# Write where the launcher writes: it gives each rank a file, and shows only rank 0's.
if "PADDLE_LOG_DIR" in os.environ:
    launchers = os.open(f"/proc/{os.getppid()}/fd/1", os.O_WRONLY)
    os.dup2(launchers, 1)
    os.dup2(launchers, 2)


def prepare(flags):
    """Set what Paddle reads from the environment, some of it on import."""
    if flags.device == "cpu":
        if not HAS_SERVERS:
            settings.variables({"PADDLE_DISTRI_BACKEND": "gloo"}, anyway=True)
        if {"AuthenticAMD", "avx2"} <= process.processor():
            # Else Paddle's MKL, of 2019, multiplies at half the speed on what Intel has not made.
            settings.variables({"MKL_DEBUG_CPU_TYPE": "5"})
