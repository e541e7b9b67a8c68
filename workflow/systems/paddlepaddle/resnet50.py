"""Train with PaddlePaddle: one process per device, started by paddlepaddle.launch."""

import os

import steplog

RANK = int(os.environ.get("PADDLE_TRAINER_ID", "0"))
WORLD_SIZE = int(os.environ.get("PADDLE_TRAINERS_NUM", "1"))


def main():
    write_to_launcher()
    flags = steplog.parse_flags()
    log = steplog.StepLog(flags, RANK, WORLD_SIZE)
    with log.to_the_end():
        prepare(flags)
        from paddlepaddle.training import train  # noqa: PLC0415

        train(flags, log)


def write_to_launcher():
    """Write to where the launcher writes: it gives each rank a file, and shows only rank 0's."""
    if "PADDLE_LOG_DIR" in os.environ:
        launchers = os.open("/proc/{}/fd/1".format(os.getppid()), os.O_WRONLY)
        os.dup2(launchers, 1)
        os.dup2(launchers, 2)


def prepare(flags):
    """What Paddle reads from the environment, some of it when it is imported."""
    if flags.device == "cpu":
        steplog.keep_to_own_cores(RANK, flags.threads)
        os.environ["PADDLE_DISTRI_BACKEND"] = "gloo"
    elif flags.precision == "fp32":
        os.environ["NVIDIA_TF32_OVERRIDE"] = "0"  # fp32 is fp32


if __name__ == "__main__":
    main()
