"""The runs of a survey: rounds in which every node trains the same plan once, in a job of its own.

A run is a whole job, not one of several trainings in a job: processes, memory and clocks start
anew, and runs of a node scatter as those of a report do.
"""

import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

from reperf.config import Report, Window
from reperf.errors import ReperfError
from reperf.files import write_whole
from reperf.layout import PLAN, RUN_LOG, SURVEY_FOLDER
from reperf.logs.formats import mllog
from reperf.measuring.found_logs import own_run
from reperf.measuring.measure import Method
from reperf.plans.run_plan import RunPlan
from reperf.records.survey_record import SurveyedRun
from reperf.text import count, printable
from reperf.training.remote import command_on
from reperf.training.slurm import SURVEY_JOB, ask, resources_of_job

_LOOK_SECONDS = 2
WAIT_SECONDS = 600
"""How long a node may be busy with other jobs before its run is given up."""


def survey_nodes(
    report: Report,
    plan: RunPlan,
    nodes: Sequence[str],
    *,
    runs: int,
    at_once: int | None,
    tell: Callable[[str], None],
) -> Iterator[SurveyedRun]:
    """Train on every node, round after round, each in an order of its own; yields what runs gave.

    The last survey's runs are removed. A node that gives a run up is left out of later rounds.

    Args:
        runs: rounds, in which each node trains once.
        at_once: how many nodes train at the same time; None: all.
        tell: takes a line of progress: what begins.

    Raises:
        ReperfError: Slurm refuses a job.
    """
    shutil.rmtree(SURVEY_FOLDER, ignore_errors=True)
    shuffled, left = Random(report.seed), list(nodes)
    for number in range(1, runs + 1):
        tell(f"round {number} of {runs} on {count(len(left), 'node')}")
        order = shuffled.sample(left, len(left))
        folders = {node: SURVEY_FOLDER / str(number) / node for node in order}
        for node, folder in folders.items():
            write_whole(folder / PLAN, (plan.on_host(node) if plan.aside.hosts else plan).text)
        if plan.aside.hosts:
            given_up = _run_on_hosts(plan.aside.remote, folders, at_once or len(order))
        else:
            given_up = _run_all(_options(report, plan), folders, at_once or len(order))
        left = [node for node in left if node not in given_up]
        for node in sorted(folders, key=nodes.index):
            yield _result(plan, node, number, folders[node], given_up.get(node, ""))


def _options(report: Report, plan: RunPlan) -> list[str]:
    """What a job asks sbatch for, just as a run of the report does."""
    asked = resources_of_job(report, [plan], lambda _: plan)
    names = {
        "tasks": "ntasks",
        "cpus_per_task": "cpus-per-task",
        "runtime": "time",
        "mem_mb": "mem",
        "slurm_partition": "partition",
        "slurm_account": "account",
    }
    options = [f"--{names[name]}={value}" for name, value in asked.items() if name in names]
    return [*options, "--no-requeue", *shlex.split(asked["sbatch_options"])]


def _run_all(options: Sequence[str], folders: dict[str, Path], at_once: int) -> dict[str, str]:
    """Run a job on each node until all have ended.

    Returns:
        The nodes without a run, and why: Slurm refuses the job, or has not started it in
        WAIT_SECONDS.
    """
    waiting, jobs, given_up = list(folders), dict[str, str](), dict[str, str]()
    begun = time.monotonic()
    try:
        while waiting or jobs:
            for node in waiting[: at_once - len(jobs)]:
                waiting.remove(node)
                begun = time.monotonic()
                try:
                    jobs[_submit(options, node, folders[node])] = node
                except ReperfError as error:
                    given_up[node] = str(error)
            time.sleep(_LOOK_SECONDS)
            with suppress(ReperfError):  # it is busy: another look follows
                lines = ask("squeue", f"--name={SURVEY_JOB}", "--me", "--format=%i|%T")
                states = {job: state for job, state, *_ in lines}
                if time.monotonic() - begun > WAIT_SECONDS:
                    idle = [job for job in jobs if states.get(job) == "PENDING"]
                    given_up |= {jobs[job]: f"no job in {WAIT_SECONDS} s" for job in idle}
                    cancel(idle)
                jobs = {job: node for job, node in jobs.items() if job in states}
    finally:
        cancel(jobs)
    return given_up


def _run_on_hosts(remote: str, folders: dict[str, Path], at_once: int) -> dict[str, str]:
    """Train on each host until all have ended.

    Returns:
        The hosts that trained nothing, and why: `remote` does not reach them, or they are in use.
    """

    def run(node: str) -> str:
        log = folders[node] / "job.log"
        with log.open("wb") as stream:
            subprocess.run(
                command_on(remote, [node], _train(folders[node])),
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=subprocess.STDOUT,
                check=False,
            )
        if (folders[node] / RUN_LOG).exists():
            return ""
        said = log.read_text(encoding="utf-8", errors="replace").splitlines()
        return printable(said[0] if said else "no answer")

    with ThreadPoolExecutor(at_once) as pool:
        reasons = dict(zip(folders, pool.map(run, folders), strict=True))
    return {node: reason for node, reason in reasons.items() if reason}


def _train(folder: Path) -> list[str]:
    return [sys.executable, "-m", "reperf.training", "--once", str(folder / PLAN)]


def _submit(options: Sequence[str], node: str, folder: Path) -> str:
    """Submit a node's job; returns its number."""
    train = shlex.join(_train(folder))
    where = [f"--nodelist={node}", f"--job-name={SURVEY_JOB}", f"--output={folder}/job.log"]
    ((job, *_),) = ask("sbatch", "--parsable", *options, *where, f"--wrap=exec {train}")
    return job.partition(";")[0]


def cancel(jobs: Iterable[str]) -> None:
    """Cancel some jobs, of which any may have ended."""
    if jobs := list(jobs):
        ask("scancel", *jobs)


def _result(plan: RunPlan, node: str, number: int, folder: Path, given_up: str) -> SurveyedRun:
    """What a run gave: its throughput by the window rule, and what it computed.

    Args:
        given_up: why it has not begun; "" if it has.
    """
    log = folder / RUN_LOG
    known: dict[str, Any] = {"node": node, "round": number, "log": str(log)}
    if given_up:
        return SurveyedRun(**known, status="failed", reason=given_up)
    first, last = plan.aside.window
    method = Method(window=Window(warmup=first, measured=last - first))
    result = own_run(plan.run, method, plan.digest, log)
    record, measured = result.record, result.measured
    if measured.status != "ok":
        status = record.status if record and record.status != "ok" else measured.status
        reason = record.reason if record and record.reason else measured.reason
        return SurveyedRun(**known, status=status, reason=reason)
    losses, weights = mllog.read_losses(log)
    return SurveyedRun(
        **known,
        status="ok",
        throughput=measured.throughput,
        losses=losses,
        weights=weights,
        alone=record.rank_seconds_alone if record else (),
    )
