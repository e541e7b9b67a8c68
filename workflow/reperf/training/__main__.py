"""What the rule that trains calls, on this machine and in a Slurm job: one try of one run.

    python -m reperf.training results/runs/<suite>/<entry>/<topology>/<repeat>/plan.json

The plan holds all that decides the run: later changes to config.yaml are for the next call.
"""

import argparse
from pathlib import Path

from reperf.building.script import script
from reperf.errors import one_line_errors
from reperf.plans.run_plan import RunPlan
from reperf.training.places import place_of
from reperf.training.train import train


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m reperf.training")
    parser.add_argument("plan", type=Path)
    parser.add_argument("--retries", type=int, default=0, help="further tries of this call")
    parser.add_argument("--log", type=Path, help="for messages; left out: standard error")
    options = parser.parse_args()
    with one_line_errors():
        plan = RunPlan.read(options.plan)
    with script(options.log, kept=plan.cluster is None):
        train(
            plan,
            lambda run: place_of(run, plan.cluster),
            retries=options.retries,
        )


if __name__ == "__main__":
    main()
