"""Train as the workflow does, once: a run, its time limit in seconds, and flags of the trainer."""

import sys

from reperf.config import Run
from reperf.training.places import ThisMachine
from reperf.training.train import train

if __name__ == "__main__":
    asked = Run.model_validate_json(sys.argv[1])
    train(
        asked,
        ThisMachine(asked),
        window=(2, 6),
        time_limit=float(sys.argv[2]),
        attempt=1,
        last_attempt=True,
        more_flags=tuple(sys.argv[3:]),
    )
