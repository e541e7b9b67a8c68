"""What to do before importing OneFlow: the import starts threads and connects the ranks."""

import os
import socket
import time

from trainers.contract import process, settings
from trainers.contract.backend import place_in
from trainers.contract.precision import halves

LOGS = os.path.abspath("logs/oneflow")
PLACE = place_in("RANK", "LOCAL_RANK", "WORLD_SIZE")


def prepare(flags):
    """Set what OneFlow reads from the environment, and wait until it can connect the ranks."""
    process.abort_late()
    os.makedirs(os.environ.setdefault("GLOG_log_dir", LOGS), exist_ok=True)
    if flags.device == "cuda" and halves(flags):
        # As a GPU's float16 units want it.
        settings.variables({"ONEFLOW_ENABLE_NHWC": "1"}, anyway=True)
    if flags.device == "cuda":
        # Of matrix products; convolutions have no switch but the launch's variables.
        tf32 = "1" if flags.precision == "tf32" else "0"
        settings.variables({"ONEFLOW_EP_CUDA_ENABLE_TF32_EXECUTION": tf32}, anyway=True)
    if flags.device == "cpu" and {"AuthenticAMD", "avx512_bf16"} <= process.processor():
        # Its OpenBLAS takes kernels for Intel's Cooper Lake there, half as fast as those before it.
        settings.variables({"OPENBLAS_CORETYPE": "SKYLAKEX"})
    if PLACE.rank > 0:
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
