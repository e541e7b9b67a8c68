"""What the rules that train call, on this machine and in a Slurm job.

    python -m reperf.training results/runs/<suite>/<entry>/<topology>/<repeat>/plan.json
    python -m reperf.training results/largest/<entry>/<digest>/plan.json
    python -m reperf.training --once results/survey/<round>/<node>/plan.json

The first makes one try of one run, the second searches for the largest batch, the third trains once
in the plan's own folder, for a survey. The plan holds all
that decides either: later changes to the configuration are for the next call.
"""

import argparse
from functools import partial
from pathlib import Path

from reperf.building.script import script
from reperf.building.work_folder import was_called_here
from reperf.errors import one_line_errors
from reperf.plans.checking import check_set
from reperf.plans.run_plan import RunPlan
from reperf.training.largest import find
from reperf.training.places import place_of
from reperf.training.train import train, try_once


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m reperf.training")
    parser.add_argument("plan", type=Path)
    parser.add_argument("--attempt", type=int, default=1, help="which try of this call it is")
    parser.add_argument("--retries", type=int, default=0, help="how many may follow the first")
    parser.add_argument("--log", type=Path, help="for messages; left out: standard error")
    parser.add_argument("--once", action="store_true", help="train in the plan's folder")
    options = parser.parse_args()
    with one_line_errors():
        plan = RunPlan.read(options.plan)
    aside = plan.aside
    place = partial(place_of, cluster=plan.cluster, remote=aside.remote, hosts=aside.hosts)
    last = options.attempt > options.retries
    guarded = plan.cluster is None or bool(aside.hosts) or was_called_here()
    with script(options.log, guarded=guarded):
        check_set(plan.run.data)
        if options.once:
            try_once(plan, place(plan.run), options.plan.parent, attempt=options.attempt)
        elif plan.is_search:
            find(plan, options.plan.parent, place, last=last)
        else:
            train(plan, place, attempt=options.attempt, last=last)


if __name__ == "__main__":
    main()
