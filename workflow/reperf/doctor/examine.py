"""Look at every node, and judge what was seen."""

import json
import secrets
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from pydantic import TypeAdapter, ValidationError

from reperf.builds import build_of, why_build
from reperf.config import Report, Run
from reperf.doctor.findings import Survey, find
from reperf.doctor.health import findings_of_others, findings_of_runs
from reperf.doctor.probe import Request
from reperf.doctor.targets import WAIT_SECONDS, Nodes
from reperf.doctor.trials import TIME_LIMIT, on_nodes, runs_to_try
from reperf.plans.costs import needed_bytes
from reperf.records.diagnosis import Diagnosis, NodeReport, Probe, Trial
from reperf.terminal import announce
from reperf.text import count
from reperf.training.remote import name_of

ANSWER_SECONDS = WAIT_SECONDS + 240
"""How long nodes may take to answer, their wait for a job included."""
_AT_ONCE = 32
_SECONDS_BETWEEN = 20  # for what happens beside a trial: launchers that end, and Python's start
_TRIALS = TypeAdapter(tuple[Trial, ...])


def examine(nodes: Nodes, report: Report, *, profile: str, configfile: str) -> Diagnosis:
    """Ask all nodes at the same time, try each system on them, and judge what they report.

    Args:
        report: with its device decided.
        profile, configfile: the names of the profile and of the report's files, for the reader.
    """
    runs: dict[str, Run] = {}
    for run in report.run_of_each_entry():
        runs.setdefault(build_of(run).id, run)
    built = {
        name: None if why_build(build_of(run)) else build_of(run).recipe_digest
        for name, run in runs.items()
    }
    startable = [run for name, run in runs.items() if built[name]]
    node_reports = _ask_all(nodes, startable)
    survey = Survey(
        report=report,
        node_reports=node_reports,
        trials=_try_all(nodes, report, node_reports),
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
        findings=(*find(survey), *findings_of_runs(), *findings_of_others(names)),
        node_reports=node_reports,
        trials=survey.trials,
    )


def _ask_all(nodes: Nodes, runs: Sequence[Run]) -> tuple[NodeReport, ...]:
    """Ask the nodes that get jobs; they write into a folder that is removed afterwards."""
    secret = secrets.token_hex()
    folder = Path.cwd()
    with (
        TemporaryDirectory(prefix=".reperf-doctor-", dir=folder) as meeting,
        ThreadPoolExecutor(_AT_ONCE) as pool,
    ):
        Path(meeting, "caller").write_text(secret, encoding="utf-8")

        def ask(host: str, why_not: str) -> NodeReport:
            node = name_of(host)
            if why_not:
                return NodeReport(node=node, offered=False, trouble=why_not)
            request = Request(
                node=node,
                folder=folder,
                meeting=Path(meeting),
                secret=secret,
                runs=tuple(runs),
                folders={build.id: build.folder for build in map(build_of, runs)},
            )
            return _ask(nodes.on(host), request)

        why_not = nodes.why_not()
        builds = count(len(runs), "build")
        announce(f"looking at {count(len(why_not), 'node')}, starting {builds} on each")
        return tuple(pool.map(ask, why_not.keys(), why_not.values()))


def _ask(start: Sequence[str], request: Request) -> NodeReport:
    """Run the probe on the node where a command starts programs."""
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


def _try_all(nodes: Nodes, report: Report, node_reports: Iterable[NodeReport]) -> tuple[Trial, ...]:
    """Try each system on all nodes where its build is well together, and on each by itself.

    A device that is alone on its node has nobody there to add up with: it is only tried by itself
    if the trial of all nodes fails.
    """
    probes = {answer.node: answer.probe for answer in node_reports if answer.probe}
    runs, able = runs_to_try(report), dict[str, tuple[str, ...]]()
    together: dict[tuple[str, ...], dict[str, Run]] = defaultdict(dict)
    alone: dict[tuple[str, ...], dict[str, Run]] = defaultdict(dict)
    for name, run in runs.items():
        build = build_of(run).id
        able[name] = tuple(node for node, probe in probes.items() if _can_run(probe, build))
        if len(able[name]) > 1:
            together[able[name]][name] = run
    results: list[Trial] = []
    # One after the other: they would slow each other.
    for among, chosen in together.items():
        announce(f"trying {', '.join(chosen)} on {count(len(among), 'node')} together")
        results += _try(nodes, report, among, chosen)
    tried = {(trial.name, trial.nodes) for trial in results}
    for name, among in able.items():
        for node in among:
            if (name, (node,)) not in tried:
                alone[(node,)][name] = runs[name]
    if alone:
        names = dict.fromkeys(name for chosen in alone.values() for name in chosen)
        announce(f"trying {', '.join(names)} on {', '.join(node for (node,) in alone)}")
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        found = pool.map(partial(_try, nodes, report), alone.keys(), alone.values())
        return (*(trial for trials in found for trial in trials), *results)


def _can_run(probe: Probe, build: str) -> bool:
    """Whether a build is made, starts on a node, and runs on its GPUs."""
    state = probe.environments.get(build)
    return bool(state and not (probe.shared_trouble or state.trouble or state.unfit))


def _try(
    nodes: Nodes, report: Report, names: tuple[str, ...], runs: dict[str, Run]
) -> Sequence[Trial]:
    """Try some systems on the named nodes, one after the other."""
    chosen = {name: on_nodes(report, run, len(names)).model_dump() for name, run in runs.items()}
    cluster = report.cluster and report.cluster.of_launch()
    seconds = len(runs) * (TIME_LIMIT + _SECONDS_BETWEEN)
    reached = report.cluster.reached() if report.cluster else {}
    if reached:
        reached["hosts"] = [host for host in reached["hosts"] if name_of(host) in names]
    request = json.dumps({"runs": chosen, "cluster": cluster, "reached": reached}, default=str)
    with _started(nodes.on_all(names, seconds), "reperf.doctor.trials", request) as process:
        answer, trouble = _end_of(process, WAIT_SECONDS + seconds + _SECONDS_BETWEEN)
    try:
        return _TRIALS.validate_json(answer)
    except ValidationError:
        return [
            Trial(name=name, build=build_of(run).id, nodes=names, trouble=f"no answer: {trouble}")
            for name, run in runs.items()
        ]


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
