"""What the rule that trains calls, on this machine and in a Slurm job: one try of one run.

    python -m reperf.training --run RUN --cluster CLUSTER --window 20 120 --time-limit 600 \
        --attempt 1 --retries 1 --log logs/train/....log

The run and the cluster are JSON, as the workflow planned them: later changes to config.yaml are for
the next call.
"""

import argparse
import json
from pathlib import Path

from reperf.building.script import script
from reperf.config import Run
from reperf.training.places import place_of
from reperf.training.record import LargestBatch
from reperf.training.train import train


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m reperf.training")
    parser.add_argument("--run", required=True, type=Run.model_validate_json)
    parser.add_argument("--cluster", required=True, type=json.loads, help="null without one")
    parser.add_argument("--window", required=True, type=int, nargs=2, help="its two iterations")
    parser.add_argument("--time-limit", required=True, type=float, help="seconds")
    parser.add_argument("--attempt", required=True, type=int, help="1 for the first")
    parser.add_argument("--largest", required=True, help="what was found, a file, or none")
    parser.add_argument("--retries", required=True, type=int, help="attempts beyond the first")
    parser.add_argument("--log", required=True, type=Path)
    options = parser.parse_args()
    options.log.parent.mkdir(parents=True, exist_ok=True)
    with script(options.log, kept=options.cluster is None):
        train(
            options.run,
            place_of(options.run, options.cluster),
            window=tuple(options.window),
            time_limit=options.time_limit,
            attempt=options.attempt,
            last_attempt=options.attempt > options.retries,
            found=LargestBatch.read(options.largest) if options.largest != "none" else None,
        )


if __name__ == "__main__":
    main()
