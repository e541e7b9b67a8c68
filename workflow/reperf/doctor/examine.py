"""Look at every node, and judge what was seen."""

import json
import secrets
import shutil
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from reperf.builds import build_of, why_build
from reperf.config import Report, Run
from reperf.doctor.case import Case
from reperf.doctor.checks import find
from reperf.doctor.diagnosis import Diagnosis, Probe, Request, Trial, Visit
from reperf.doctor.need import needed_by, needed_bytes
from reperf.doctor.trials import TIME_LIMIT, on_nodes, runs_to_try
from reperf.doctor.where import WAIT_SECONDS, Where

ANSWER_SECONDS = WAIT_SECONDS + 240
"""How long nodes may take to answer, their wait for a job included."""
_AT_ONCE = 32
_SECONDS_BETWEEN = 20
"""For what happens beside a trial: launchers that end, and Python's start."""
_TRIALS = TypeAdapter(tuple[Trial, ...])


def examine(where: Where, report: Report, *, profile: str, configfile: str) -> Diagnosis:
    """Visit all nodes at the same time, try each system on them, and judge what they report."""
    runs = _runs(report)
    builds = {name: build_of(run) for name, run in runs.items()}
    built = {name: None if why_build(one) else one.recipe_digest for name, one in builds.items()}
    visits = _visit_all(where, [run for name, run in runs.items() if built[name]])
    case = Case(
        report=report,
        visits=visits,
        trials=_try_all(where, report, built, visits),
        built=built,
        needed_bytes=needed_bytes(report, built),
    )
    return Diagnosis(
        profile=profile,
        configfile=configfile,
        made=datetime.now(UTC).isoformat(timespec="seconds"),
        on_cluster=report.cluster is not None,
        partition=report.cluster.partition if report.cluster else None,
        findings=find(case),
        visits=visits,
        trials=case.trials,
    )


def _runs(report: Report) -> dict[str, Run]:
    """A run for each build that the report uses, by the build's id."""
    found: dict[str, Run] = {}
    for run in report.run_of_each_entry():
        found.setdefault(build_of(run).id, run)
    return found


def _visit_all(where: Where, runs: Iterable[Run]) -> tuple[Visit, ...]:
    """Visit the nodes that get jobs; they write into a folder that is removed afterwards."""
    meeting, secret = Path(f".reperf-doctor-{secrets.token_hex(4)}"), secrets.token_hex()

    def visit(node: str, why_not: str) -> Visit:
        if why_not:
            return Visit(node=node, offered=False, trouble=why_not)
        request = Request(
            node=node, folder=Path.cwd(), meeting=meeting, secret=secret, runs=tuple(runs)
        )
        return _visit(where.on(node), request)

    meeting.mkdir()
    try:
        (meeting / "caller").write_text(secret, encoding="utf-8")
        nodes = where.nodes()
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            return tuple(pool.map(visit, nodes.keys(), nodes.values()))
    finally:
        shutil.rmtree(meeting, ignore_errors=True)


def _visit(start: Sequence[str], request: Request) -> Visit:
    """Run the probe on one node.

    Args:
        start: the command that runs a program there.
    """
    with _started(start, "reperf.doctor.probe", request.model_dump_json()) as process:
        assert process.stdout
        clock, arrived = process.stdout.readline(), time.time()
        answer, trouble = _end_of(process, ANSWER_SECONDS)
    try:
        probe = Probe.model_validate_json(answer)
    except ValidationError:
        return Visit(node=request.node, trouble=f"no answer: {trouble}")
    note = request.meeting / request.node
    return Visit(
        node=request.node,
        probe=probe,
        clock_offset=round(arrived - float(clock), 3),
        note_arrived=note.exists() and note.read_text(encoding="utf-8") == request.secret,
    )


def _try_all(
    where: Where, report: Report, built: dict[str, str | None], visits: Iterable[Visit]
) -> tuple[Trial, ...]:
    """Try each system on each node where its build is well, then on all of those together."""
    probes = {visit.node: visit.probe for visit in visits if visit.probe}
    alone: dict[tuple[str, ...], dict[str, Run]] = defaultdict(dict)
    together: dict[tuple[str, ...], dict[str, Run]] = defaultdict(dict)
    for name, run in runs_to_try(report).items():
        build = build_of(run).id
        nodes = tuple(node for node in probes if built[build] and _can_run(probes[node], build))
        for node in nodes:
            alone[(node,)][name] = run
        if len(nodes) > 1:
            together[nodes][name] = run
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        found = list(pool.map(partial(_try, where, report), alone.keys(), alone.values()))
    # One after the other: they would slow each other.
    found += [_try(where, report, nodes, runs) for nodes, runs in together.items()]
    return tuple(trial for trials in found for trial in trials)


def _try(
    where: Where, report: Report, nodes: tuple[str, ...], runs: dict[str, Run]
) -> Sequence[Trial]:
    """Try some systems on some nodes, one after the other."""
    chosen = {name: on_nodes(report, run, len(nodes)).model_dump() for name, run in runs.items()}
    cluster = report.cluster and report.cluster.of_launch()
    # The framework is tried, then on a single node the loader.
    seconds = 2 * len(runs) * (TIME_LIMIT + _SECONDS_BETWEEN)
    asked = json.dumps({"runs": chosen, "cluster": cluster})
    with _started(where.on_all(nodes, seconds), "reperf.doctor.trials", asked) as one:
        answer, trouble = _end_of(one, WAIT_SECONDS + seconds + _SECONDS_BETWEEN)
    try:
        trials = _TRIALS.validate_json(answer)
    except ValidationError:
        trouble = f"no answer: {trouble}"
        return [
            Trial(name=name, build=build_of(run).id, nodes=nodes, trouble=trouble)
            for name, run in runs.items()
        ]
    return [
        trial.model_copy(update={"needed": needed_by(report, runs[trial.name])})
        if trial.loaded is not None
        else trial
        for trial in trials
    ]


def _can_run(probe: Probe, build: str) -> bool:
    state = probe.environments[build]
    return not (probe.shared_trouble or state.trouble or state.unfit)


def _started(start: Sequence[str], module: str, argument: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*start, sys.executable, "-m", module, argument],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def _end_of(process: subprocess.Popen[str], seconds: float) -> tuple[str, str]:
    """What else a process prints, and its last error line, or that it had to be ended."""
    try:
        answer, messages = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.terminate()  # Slurm's commands cancel their job then
        process.communicate()
        return "", f"none within {seconds:g} s"
    return answer, (messages.strip().splitlines() or ["it printed nothing"])[-1]
