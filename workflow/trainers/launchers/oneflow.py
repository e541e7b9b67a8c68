"""Start OneFlow's own launcher: python -m trainers.launchers.oneflow ..., with its flags.

Its logs lie then where the workflow keeps logs, and it says which rank has failed.
"""

import os
import runpy
import subprocess
import sys
import threading
import time

from trainers.launchers.ranks import said_of_end

LOGS = os.path.abspath("logs/oneflow")


class Started(subprocess.Popen):
    """What OneFlow's launcher starts, its ranks among it."""

    ranks = {}  # process -> its number

    def __init__(self, *command, **how):
        super().__init__(*command, **how)
        number = (how.get("env") or {}).get("RANK")
        if number is not None:
            Started.ranks[self.pid] = number

    def poll(self):
        code = super().poll()
        if code:
            _say_that_it_failed(self.pid, code)  # before OneFlow's launcher ends the others
        return code


def main():
    os.environ.setdefault("GLOG_log_dir", LOGS)
    sys.argv.insert(1, f"--logdir={LOGS}")  # of the ranks
    subprocess.Popen = Started
    threading.Thread(target=_name_the_first_to_fail, daemon=True).start()
    runpy.run_module("oneflow.distributed.launch", run_name="__main__", alter_sys=True)


def _name_the_first_to_fail():
    """The others fail after it, before OneFlow's launcher looks."""
    while True:
        try:
            ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT)
        except ChildProcessError:  # none has been started yet
            ended = None
        if ended and ended.si_status and ended.si_pid in Started.ranks:
            code = ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status
            _say_that_it_failed(ended.si_pid, code)
            return
        time.sleep(0.1)


def _say_that_it_failed(process, code):
    number = Started.ranks.get(process)
    if number is not None:
        Started.ranks = {}
        os.write(1, f"{said_of_end(f'rank {number}', code)}\n".encode())


if __name__ == "__main__":
    main()
