"""Every system's framework on its devices, started just as a run is: same launcher, same build.

`trainers/trial.py` is what the launcher starts. Each of its ranks convolves on its device, adds up
numbers with all others, and prints a line `:::TRIAL {...}`.

Started where a run's script would be, this prints a JSON list of a Trial for each run:

    python -m reperf.doctor.trials '{"runs": {name: ...}, "cluster": ..., "reached": ...}'
"""

import json
import os
import sys
from pathlib import Path
from statistics import fmean
from typing import Any

from reperf.builds import build_of
from reperf.config import Report, Run
from reperf.errors import ReperfError
from reperf.plans.run_plan import plan_run
from reperf.records.diagnosis import Trial, trial_name
from reperf.systems import TRAINERS, load_systems
from reperf.training.places import Place, place_of
from reperf.training.start import start_of

MEGABYTES = (1, 16, 64)
"""What is added up: 64 MB are more than ResNet-50's gradients in half precision."""
TIME_LIMIT = 120  # seconds for one system, the framework's start included
_PROGRAM = TRAINERS / "trial.py"
_MARK = ":::TRIAL "


def runs_to_try(report: Report) -> dict[str, Run]:
    """A run for each system and each of its builds in a report, by its name.

    Systems without a backend, which train by programs of their own, are left out.
    """
    runs = report.run_of_each_entry()
    return {trial_name(run): run for run in runs if _backend_of(run)}


def _backend_of(run: Run) -> str | None:
    """The backend by which a run's framework is tried; None for programs of their own."""
    return load_systems()[run.system].named(run.workload).get("backend")


def on_nodes(report: Report, run: Run, nodes: int) -> Run:
    """A run as it is tried on so many nodes: with the most devices that a run uses on one."""
    devices = report.on(run.device).largest_shape[1]
    return run.model_copy(update={"topology": f"{nodes}n{devices}g"})


def main() -> None:
    """Try what the command line says: runs by name, and their cluster or null."""
    request = json.loads(sys.argv[1])
    runs = {name: Run.model_validate(run) for name, run in request["runs"].items()}
    cluster, reached = request["cluster"], request["reached"]
    trials = [
        trial.model_dump()
        for name, run in runs.items()
        for trial in _try(name, run, place_of(run, cluster, **reached))
    ]
    print(json.dumps(trials))


def _try(name: str, run: Run, place: Place) -> list[Trial]:
    """Try a run on its nodes; devices that are alone on theirs are trials of their own, too."""
    where = place.nodes[0] if len(place.nodes) == 1 else f"{len(place.nodes)}-nodes"
    log = Path("logs/doctor") / f"{name.replace(' ', '-')}.{where}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    trial = {"name": name, "build": build_of(run).id, "nodes": place.nodes, "log": str(log)}
    try:
        ranks = _ranks(run, place, log)
    except ReperfError as error:
        return [Trial(**trial, trouble=str(error))]
    except OSError as error:  # the launcher is not there
        return [Trial(**trial, trouble=f"{error.filename}: {error.strerror}")]
    each = zip(place.nodes, ranks, strict=True) if run.nodes > 1 == run.devices_per_node else ()
    alone = [
        _trial(trial | {"nodes": (node,)}, run, [rank | {"transfers": ()}]) for node, rank in each
    ]
    return [*alone, _trial(trial, run, ranks)]


def _trial(known: dict[str, Any], run: Run, ranks: list[dict[str, Any]]) -> Trial:
    """What some ranks found."""
    first, *others = (rank["matrix_rates"] for rank in ranks)
    common = [dtype for dtype in first if all(dtype in other for other in others)]
    return Trial(
        **known,
        world_size=len(ranks),
        devices=[rank["device"] for rank in ranks],
        convolution_error=max(rank["convolution_error"] for rank in ranks),
        threads=run.threads,
        matrix_rates={t: fmean(rank["matrix_rates"][t] for rank in ranks) for t in common},
        library=ranks[0]["library"],
        transfers=ranks[0]["transfers"],
    )


def _ranks(run: Run, place: Place, log: Path) -> list[dict[str, Any]]:
    """Start the ranks, and return what each of them printed, in the order of ranks."""
    program = [
        os.path.relpath(_PROGRAM),
        f"--backend={_backend_of(run)}",
        f"--device={run.device}",
        f"--threads={run.threads}",
        "--bytes",
        *(str(size * 10**6) for size in MEGABYTES),
        # Several devices of a node are timed without the other nodes.
        *(["--rates"] if 1 in (run.nodes, run.devices_per_node) else []),
    ]
    alone = run.model_copy(update={"servers": None})  # a trial trains nothing
    plan = plan_run(alone, window=(1, run.iterations), time_limit=TIME_LIMIT)
    start = start_of(plan, place, program)
    outcome = start.launched(place, alone, log=log, time_limit=TIME_LIMIT)
    lines = log.read_text(errors="replace").splitlines()
    if outcome.exit_code != 0:
        how = f"no end after {TIME_LIMIT} s" if outcome.timed_out else f"exit {outcome.exit_code}"
        raise ReperfError(": ".join([f"failed, {how}", *list(filter(str.strip, lines))[-1:]]))
    ranks = [json.loads(line.partition(_MARK)[2]) for line in lines if _MARK in line]
    if len(ranks) != run.world_size:
        raise ReperfError(f"{len(ranks)} of {run.world_size} ranks reported")
    return sorted(ranks, key=lambda rank: rank["rank"])


if __name__ == "__main__":
    main()
