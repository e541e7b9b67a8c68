"""Look at every node, and judge what was seen."""

import json
import secrets
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

from pydantic import ValidationError

from reperf.config import Report
from reperf.doctor.all_reduce import planned
from reperf.doctor.case import Case
from reperf.doctor.checks import find
from reperf.doctor.diagnosis import AllReduce, Diagnosis, Probe, Request, Visit
from reperf.doctor.space import needed_bytes
from reperf.doctor.where import WAIT_SECONDS, Where
from reperf.systems import load_systems
from reperf.systems.environments import is_current, read_environment

ANSWER_SECONDS = WAIT_SECONDS + 240
"""How long nodes may take to answer, their wait for a job included."""
_AT_ONCE = 32


def examine(where: Where, report: Report, *, profile: str, configfile: Path) -> Diagnosis:
    """Visit all nodes at the same time, let them talk to each other, and judge what they report.

    Args:
        where: the nodes.
        report: what is to run there.
        profile, configfile: where both come from, for the record.
    """
    built = _built(report)
    visits = _visit_all(where, [name for name, lock in built.items() if lock])
    case = Case(
        report=report,
        visits=visits,
        all_reduce=_let_talk(where, report, built, visits),
        built=built,
        needed_bytes=needed_bytes(report, built),
    )
    return Diagnosis(
        profile=profile,
        configfile=str(configfile),
        made=datetime.now(UTC).isoformat(timespec="seconds"),
        findings=find(case),
        visits=visits,
        all_reduce=case.all_reduce,
    )


def _built(report: Report) -> dict[str, str | None]:
    """Case.built, for all systems that the report runs."""
    names = dict.fromkeys(run.system for suite in report.suites for run in report.runs(suite))
    systems = {name: load_systems()[name] for name in names}
    return {
        name: read_environment(system.environment).lock_sha256
        if is_current(system, system.environment)
        else None
        for name, system in systems.items()
    }


def _visit_all(where: Where, systems: Iterable[str]) -> tuple[Visit, ...]:
    """Visit the nodes that get jobs; they write into a folder that is removed afterwards."""
    meeting, secret = Path(f".reperf-doctor-{secrets.token_hex(4)}"), secrets.token_hex()

    def visit(node: str, why_not: str) -> Visit:
        if why_not:
            return Visit(node=node, offered=False, trouble=why_not)
        request = Request(
            node=node, folder=Path.cwd(), meeting=meeting, secret=secret, systems=tuple(systems)
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
    with _started([*start, *_module("reperf.doctor.probe"), request.model_dump_json()]) as process:
        clock, arrived = process.stdout.readline(), time.time()
        answer, trouble = _end_of(process)
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


def _let_talk(
    where: Where, report: Report, built: dict[str, str | None], visits: tuple[Visit, ...]
) -> AllReduce:
    """All-reduce between the nodes that could take part in a run."""
    well = tuple(visit.node for visit in visits if visit.probe and _can_run(visit.probe))
    run = planned(report, built, len(well))
    if isinstance(run, str):
        return AllReduce(system=None, trouble=run)
    cluster = report.cluster and report.cluster.of_launch()
    asked = json.dumps({"run": run.model_dump(), "cluster": cluster})
    command = [*where.on_all(well), *_module("reperf.doctor.all_reduce"), asked]
    with _started(command) as process:
        answer, trouble = _end_of(process)
    try:
        return AllReduce.model_validate_json(answer)
    except ValidationError:
        return AllReduce(system=run.system, nodes=well, trouble=f"no answer: {trouble}")


def _can_run(probe: Probe) -> bool:
    environments = probe.environments.values()
    return not (probe.shared_trouble or any(state.trouble for state in environments))


def _module(name: str) -> list[str]:
    return [sys.executable, "-m", name]


def _started(command: Sequence[str]) -> subprocess.Popen[str]:
    return subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def _end_of(process: subprocess.Popen[str]) -> tuple[str, str]:
    """What else a process prints, and its last error line, or that it had to be ended."""
    try:
        answer, messages = process.communicate(timeout=ANSWER_SECONDS)
    except subprocess.TimeoutExpired:
        process.terminate()  # Slurm's commands cancel their job then
        process.communicate()
        return "", f"none within {ANSWER_SECONDS} s"
    return answer, (messages.strip().splitlines() or ["it printed nothing"])[-1]
