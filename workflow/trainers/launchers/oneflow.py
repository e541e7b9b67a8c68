"""Start OneFlow's own launcher, which keeps its logs where the workflow keeps logs.

Used as python -m trainers.launchers.oneflow ..., with the flags of oneflow.distributed.launch.

Of its own OneFlow writes them into log/, of the folder in which it is imported.
"""

import os
import runpy
import sys

LOGS = os.path.abspath("logs/oneflow")


def main():
    os.environ.setdefault("GLOG_log_dir", LOGS)
    sys.argv.insert(1, f"--logdir={LOGS}")  # of the ranks
    runpy.run_module("oneflow.distributed.launch", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
