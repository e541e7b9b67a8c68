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
from reperf.doctor.findings import find
from reperf.doctor.health import findings_of_others
from reperf.doctor.probe import Request
from reperf.doctor.survey import Survey
from reperf.doctor.targets import WAIT_SECONDS, Nodes
from reperf.doctor.trials import TIME_LIMIT, on_nodes, runs_to_try
from reperf.errors import ReperfError
from reperf.layout import ALL_SUMMARY
from reperf.plans.costs import needed_bytes
from reperf.records.diagnosis import Diagnosis, NodeReport, Probe, Trial
from reperf.tables import read_summary

ANSWER_SECONDS = WAIT_SECONDS + 240
"""How long nodes may take to answer, their wait for a job included."""
_AT_ONCE = 32
_SECONDS_BETWEEN = 20
"""For what happens beside a trial: launchers that end, and Python's start."""
_TRIALS = TypeAdapter(tuple[Trial, ...])


def examine(nodes: Nodes, report: Report, *, profile: str, configfile: str) -> Diagnosis:
    """Ask all nodes at the same time, try each system on them, and judge what they report.

    Args:
        nodes: where the report runs.
        report: with its device decided.
        profile: its name, for the reader.
        configfile: the report's files, for the reader.
    """
    runs: dict[str, Run] = {}
    for run in report.run_of_each_entry():
        runs.setdefault(build_of(run).id, run)
    builds = {name: build_of(run) for name, run in runs.items()}
    built = {
        name: None if why_build(build) else build.recipe_digest for name, build in builds.items()
    }
    node_reports = _ask_all(nodes, [run for name, run in runs.items() if built[name]])
    survey = Survey(
        report=report,
        node_reports=node_reports,
        trials=_try_all(nodes, report, built, node_reports),
        built=built,
        needed_bytes=needed_bytes(report, built),
    )
    names = tuple(node_report.node for node_report in node_reports)
    return Diagnosis(
        profile=profile,
        configfile=configfile,
        made=datetime.now(UTC).isoformat(timespec="seconds"),
        on_cluster=report.cluster is not None,
        partition=report.cluster.partition if report.cluster else None,
        findings=(*find(survey), *findings_of_others(names)),
        node_reports=node_reports,
        trials=survey.trials,
    )


def _ask_all(nodes: Nodes, runs: Iterable[Run]) -> tuple[NodeReport, ...]:
    """Ask the nodes that get jobs; they write into a folder that is removed afterwards."""
    meeting, secret = Path(f".reperf-doctor-{secrets.token_hex(4)}"), secrets.token_hex()

    def ask(node: str, why_not: str) -> NodeReport:
        if why_not:
            return NodeReport(node=node, offered=False, trouble=why_not)
        request = Request(
            node=node, folder=Path.cwd(), meeting=meeting, secret=secret, runs=tuple(runs)
        )
        return _ask(nodes.on(node), request)

    meeting.mkdir()
    try:
        (meeting / "caller").write_text(secret, encoding="utf-8")
        why_not = nodes.why_not()
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            return tuple(pool.map(ask, why_not.keys(), why_not.values()))
    finally:
        shutil.rmtree(meeting, ignore_errors=True)


def _ask(start: Sequence[str], request: Request) -> NodeReport:
    """Run the probe on one node.

    Args:
        start: the command that runs a program there.
        request: what the probe is asked.
    """
    with _started(start, "reperf.doctor.probe", request.model_dump_json()) as process:
        assert process.stdout
        clock, arrived = process.stdout.readline(), time.time()
        answer, trouble = _end_of(process, ANSWER_SECONDS)
    try:
        probe = Probe.model_validate_json(answer)
    except ValidationError:
        return NodeReport(node=request.node, trouble=f"no answer: {trouble}")
    note = request.meeting / request.node
    return NodeReport(
        node=request.node,
        probe=probe,
        clock_offset=round(arrived - float(clock), 3),
        note_arrived=note.exists() and note.read_text(encoding="utf-8") == request.secret,
    )


def _try_all(
    nodes: Nodes,
    report: Report,
    built: dict[str, str | None],
    node_reports: Iterable[NodeReport],
) -> tuple[Trial, ...]:
    """Try each system on each node where its build is well, then on all of those together."""
    probes = {answer.node: answer.probe for answer in node_reports if answer.probe}
    alone: dict[tuple[str, ...], dict[str, Run]] = defaultdict(dict)
    together: dict[tuple[str, ...], dict[str, Run]] = defaultdict(dict)
    for name, run in runs_to_try(report).items():
        build = build_of(run).id
        able = tuple(node for node in probes if built[build] and _can_run(probes[node], build))
        for node in able:
            alone[(node,)][name] = run
        if len(able) > 1:
            together[able][name] = run
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        results = list(pool.map(partial(_try, nodes, report), alone.keys(), alone.values()))
    # One after the other: they would slow each other.
    results += [_try(nodes, report, names, runs) for names, runs in together.items()]
    return tuple(trial for trials in results for trial in trials)


def _try(
    nodes: Nodes, report: Report, names: tuple[str, ...], runs: dict[str, Run]
) -> Sequence[Trial]:
    """Try some systems on the named nodes, one after the other."""
    chosen = {name: on_nodes(report, run, len(names)).model_dump() for name, run in runs.items()}
    cluster = report.cluster and report.cluster.of_launch()
    # The framework is tried, then on a single node the loader.
    seconds = 2 * len(runs) * (TIME_LIMIT + _SECONDS_BETWEEN)
    request = json.dumps({"runs": chosen, "cluster": cluster})
    with _started(nodes.on_all(names, seconds), "reperf.doctor.trials", request) as process:
        answer, trouble = _end_of(process, WAIT_SECONDS + seconds + _SECONDS_BETWEEN)
    try:
        trials = _TRIALS.validate_json(answer)
    except ValidationError:
        trouble = f"no answer: {trouble}"
        return [
            Trial(name=name, build=build_of(run).id, nodes=names, trouble=trouble)
            for name, run in runs.items()
        ]
    return [
        trial.model_copy(update={"needed": trained_without_loader(report, runs[trial.name])})
        if trial.loaded is not None
        else trial
        for trial in trials
    ]


def trained_without_loader(report: Report, run: Run) -> float | None:
    """Samples per second that the devices of one node train, if their loader never lets them wait.

    Taken from the cells of the report that lies here, measured on synthetic input: the same system,
    variant, workload and precision, the fastest per device.

    Returns:
        None if nothing of the kind has been measured yet.
    """
    synthetic = {
        suite.name
        for suite in report.suites
        if suite.input == "synthetic"
        and (suite.workload, suite.precision, suite.shape)
        == (run.workload, run.precision, run.shape)
    }
    if not synthetic or not Path(ALL_SUMMARY).exists():
        return None
    try:
        cells = read_summary(ALL_SUMMARY)
    except ReperfError:
        return None
    wanted = {
        "system": run.system,
        "variant": run.shown_variant or "",
        "parallel": run.identity["parallel"] or "",
        "servers": run.identity["servers"] or "",
        "status": "ok",
    }
    cells = cells[cells["suite"].isin(synthetic)]
    for column, value in wanted.items():
        cells = cells[cells[column] == value]
    if cells.empty:
        return None
    per_device = cells["throughput_median"] / (cells["num_nodes"] * cells["devices_per_node"])
    return float(per_device.max()) * report.on(run.device).largest_shape[1]


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
