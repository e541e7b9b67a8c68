"""Train as the workflow does, once: a run, its time limit in seconds, and flags of the trainer.

A test need not wait for the limit where it knows that nothing else would happen until then.
"""

import sys
from pathlib import Path

from reperf.config import Run
from reperf.plans.run_plan import plan_run
from reperf.training import start
from reperf.training.places import ThisMachine
from reperf.training.train import train

LIMIT_IS_OVER = Path("limit-is-over")
"""Once this file is in the work folder, the run has reached its limit."""


class Limit(float):
    """The seconds of a run's limit, or 0 once it is over; a launch adds them to its beginning."""

    def __radd__(self, begun: float) -> float:
        return begun + (0.0 if LIMIT_IS_OVER.exists() else float(self))


if __name__ == "__main__":
    asked, limit = Run.model_validate_json(sys.argv[1]), int(sys.argv[2])
    launch = start.launch
    start.launch = lambda *words, **options: launch(
        *words, **options | {"time_limit": Limit(limit)}
    )
    plan = plan_run(asked, window=(2, 6), time_limit=limit).anew()
    flags = sys.argv[3:]
    train(
        plan._but(program=(*plan.program, *flags), server=(*plan.server, *flags)),
        ThisMachine,
    )
