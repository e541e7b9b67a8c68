"""Train with OneFlow: one process per device, started by oneflow.distributed.launch."""

import os
import socket
import time

import steplog
from aborts import abort_late

RANK = int(os.environ.get("RANK", "0"))
WORLD_SIZE = int(os.environ.get("WORLD_SIZE", "1"))


def main():
    flags = steplog.parse_flags()
    log = steplog.StepLog(flags, RANK, WORLD_SIZE)
    with log.to_the_end():
        prepare(flags)
        from training import train  # noqa: PLC0415

        train(flags, log)


def prepare(flags):
    """What must be done before OneFlow is imported: the import starts its threads, and connects."""
    abort_late()
    if flags.device == "cpu":
        steplog.keep_to_own_cores(RANK, flags.threads)
    elif flags.precision == "fp32":
        os.environ["ONEFLOW_EP_CUDA_ENABLE_TF32_EXECUTION"] = "0"  # fp32 is fp32
    else:
        os.environ["ONEFLOW_ENABLE_NHWC"] = "1"  # as a GPU's float16 units want it
    if RANK > 0:
        wait_for_head()


def wait_for_head():
    """Wait until the first rank listens: a rank that calls before then tries again 10 s later."""
    head = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
    while True:
        try:
            socket.create_connection(head, timeout=1).close()
            return
        except OSError:
            time.sleep(0.1)


if __name__ == "__main__":
    main()
