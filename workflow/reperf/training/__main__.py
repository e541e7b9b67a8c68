"""What the rules that train call, on this machine and in a Slurm job.

    python -m reperf.training results/runs/<suite>/<entry>/<topology>/<repeat>/plan.json
    python -m reperf.training results/largest/<entry>/<digest>/plan.json

The first makes one try of one run, the second a search for the largest batch. The plan holds all
that decides either: later changes to config.yaml are for the next call.
"""

import argparse
from functools import partial
from pathlib import Path

from reperf.building.script import script
from reperf.errors import one_line_errors
from reperf.plans.run_plan import RunPlan
from reperf.training.largest import find
from reperf.training.places import place_of
from reperf.training.train import train


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m reperf.training")
    parser.add_argument("plan", type=Path)
    parser.add_argument(
        "--retries", type=int, default=0, help="further tries, or searches, of this call"
    )
    parser.add_argument("--log", type=Path, help="for messages; left out: standard error")
    options = parser.parse_args()
    with one_line_errors():
        plan = RunPlan.read(options.plan)
    place = partial(place_of, cluster=plan.cluster)
    with script(options.log, guarded=plan.cluster is None):
        if plan.is_search:
            find(plan, options.plan.parent, place, retries=options.retries)
        else:
            train(plan, place, retries=options.retries)


if __name__ == "__main__":
    main()
