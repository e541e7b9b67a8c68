"""What to do before importing OneFlow: the import starts threads and connects the ranks."""

import os
import socket
import time
from contextlib import contextmanager

from trainers.contract import process
from trainers.contract.aborts import abort_late
from trainers.contract.rank import training
from trainers.launchers.oneflow import LOGS

RANK = int(os.environ.get("RANK", "0"))
LOCAL_RANK = int(os.environ.get("LOCAL_RANK", "0"))
WORLD_SIZE = int(os.environ.get("WORLD_SIZE", "1"))


@contextmanager
def prepared(recipe):
    """Import OneFlow and train inside this block; the process ends with it.

    Args:
        recipe: the workload's numbers, a module of trainers.recipes.

    Yields:
        The flags and the step log.
    """
    with training(recipe, RANK, WORLD_SIZE, LOCAL_RANK) as (flags, log):
        prepare(flags)
        yield flags, log


def prepare(flags):
    """Set what OneFlow reads from the environment, and wait until it can connect the ranks."""
    abort_late()
    os.environ.setdefault("GLOG_log_dir", LOGS)
    if flags.device == "cpu":
        process.keep_to_own_cores(RANK, flags.threads)
    elif flags.precision != "fp32":
        os.environ["ONEFLOW_ENABLE_NHWC"] = "1"  # as a GPU's float16 units want it
    if RANK > 0:
        _wait_for_head()


def _wait_for_head():
    """Wait until the first rank listens: a rank that calls too early retries only after 10 s."""
    head = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
    while True:
        try:
            socket.create_connection(head, timeout=1).close()
            return
        except OSError:
            time.sleep(0.1)
