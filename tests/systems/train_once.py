"""Train as the workflow does, once: a run, its time limit in seconds, and flags of the trainer."""

import sys

from reperf.config import Run
from reperf.plans.run_plan import plan_run
from reperf.training.places import ThisMachine
from reperf.training.train import train

if __name__ == "__main__":
    asked = Run.model_validate_json(sys.argv[1])
    train(
        plan_run(asked, window=(2, 6), time_limit=int(sys.argv[2])).anew(),
        ThisMachine,
        more_flags=tuple(sys.argv[3:]),
    )
