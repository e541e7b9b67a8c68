"""All-reduces between all devices, started just as a run is: same launcher, same environment.

This takes a system with doctor/allreduce.py in its folder: a program for the system's own
launcher, which takes --device and --bytes and prints one line `:::ALL-REDUCE {...}` with the
world size, the backend and the median seconds of each size.

Started where a run's script would be, this prints an AllReduce as JSON:

    python -m reperf.doctor.all_reduce '{"run": ..., "cluster": ...}'
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

from reperf.config import Report, Run
from reperf.doctor.case import largest_shape
from reperf.doctor.diagnosis import AllReduce
from reperf.systems import System, load_systems
from reperf.training.launch import launch
from reperf.training.places import place_of
from reperf.training.train import launcher, path_into, run_variables

MEGABYTES = (1, 16, 64)
TIME_LIMIT = 120
"""Seconds, the framework's start included."""
LOG = Path("logs/doctor/all-reduce.log")
_MARK = ":::ALL-REDUCE "


def program_of(system: System) -> Path:
    """A system's all-reduce program, which most systems lack."""
    return system.folder / "doctor" / "allreduce.py"


def planned(report: Report, built: dict[str, str | None], nodes: int) -> Run | str:
    """The run to launch as, on so many nodes, or why there is none."""
    able = [
        run
        for suite in report.suites
        for run in report.runs(suite)
        if program_of(load_systems()[run.system]).exists()
    ]
    ready = [run for run in able if built[run.system]]
    devices = largest_shape(report)[1]
    if not able:
        return "no system of the report has a program for it"
    if not ready:
        return "its environment is not built"
    if nodes * devices < 2:
        return "there is only one device"
    return ready[0].model_copy(update={"topology": f"{nodes}n{devices}g"})


def main() -> None:
    """Launch as the command line says: a run, and its cluster or null."""
    asked = json.loads(sys.argv[1])
    print(_all_reduce(Run.model_validate(asked["run"]), asked["cluster"]).model_dump_json())


def _all_reduce(run: Run, cluster: dict[str, Any] | None) -> AllReduce:
    system, place = load_systems()[run.system], place_of(run, cluster)
    program = [
        os.path.relpath(program_of(system)),
        f"--device={run.device}",
        "--bytes",
        *(str(size * 10**6) for size in MEGABYTES),
    ]
    variables = {**run_variables(run, system), **place.variables, "PATH": path_into(system)}
    LOG.parent.mkdir(parents=True, exist_ok=True)
    outcome = launch(
        place.start([*launcher(run, system, place), *program]),
        log=LOG,
        time_limit=TIME_LIMIT,
        world_size=run.world_size,
        environment={**place.environment, **variables},
        lines=place.lines,
        seconds_to_end=place.seconds_to_end,
    )
    lines = LOG.read_text(errors="replace").splitlines()
    answer = next((json.loads(line.partition(_MARK)[2]) for line in lines if _MARK in line), None)
    if answer is not None and outcome.exit_code == 0:
        return AllReduce(system=run.system, nodes=place.nodes, **answer)
    how = f"no end after {TIME_LIMIT} s" if outcome.timed_out else f"exit {outcome.exit_code}"
    trouble = ": ".join([f"failed, {how}", *lines[-1:]])
    return AllReduce(system=run.system, nodes=place.nodes, trouble=trouble)


if __name__ == "__main__":
    main()
