"""The runs of a survey: rounds in which every node, or pair, trains a plan once, in its own job.

A run is a whole job, not one of several trainings in a job: processes, memory and clocks start
anew, and runs of a node scatter as those of a report do.
"""

import shlex
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

from reperf.config import Report, Window
from reperf.errors import ReperfError
from reperf.files import write_whole
from reperf.layout import PLAN, RUN_LOG
from reperf.logs.formats import mllog
from reperf.measuring.found_logs import own_run
from reperf.measuring.measure import Method
from reperf.plans.run_plan import RunPlan
from reperf.records.survey_record import SurveyedRun
from reperf.terminal import announce
from reperf.text import count, printable
from reperf.training.remote import command_on
from reperf.training.slurm import SURVEY_JOB, ask, resources_of_job

_LOOK_SECONDS = 2
WAIT_SECONDS = 600
"""How long a node may be busy with other jobs before its run is given up."""


Nodes = tuple[str, ...]
"""The nodes on which a run trains, one or a pair, in the order of the report's nodes."""


def name_of_pair(nodes: Nodes) -> str:
    """The name of a run's nodes in records and folders; no host's name has a + in it."""
    return "+".join(nodes)


def tournament(nodes: Sequence[str], others: int, seed: int) -> list[list[Nodes]]:
    """Draw groups of pairs that can train at the same time; each node is in one pair of a group.

    With an odd number of nodes, one node rests in each group.

    Args:
        others: how many groups to draw. Each group pairs every node with a different one, so there
            are at most as many groups as other nodes.

    Source: T. P. Kirkman, On a Problem in Combinations, Cambridge and Dublin Mathematical Journal 2
    (1847), 191-204: a round robin by turning all nodes but one.
    """
    random = Random(seed)
    even = [*nodes, *[""] * (len(nodes) % 2)]
    random.shuffle(even)
    groups = []
    for turn in range(1, len(even)):
        row = [even[0], *even[turn:], *even[1:turn]]
        facing = zip(row, reversed(row[len(row) // 2 :]), strict=False)
        pairs = [tuple(sorted(pair, key=nodes.index)) for pair in facing if "" not in pair]
        groups.append(pairs)
    return random.sample(groups, min(others, len(groups)))


def survey_runs(
    report: Report,
    plan: RunPlan,
    groups: Sequence[Sequence[Nodes]],
    folder: Path,
    *,
    runs: int,
    at_once: int | None,
) -> Iterator[SurveyedRun]:
    """Train on all nodes or pairs, round after round, in shuffled order; yields their results.

    A node or pair on which a run is given up is left out of later rounds.

    Args:
        groups: of nodes or pairs that train at the same time, one group after the other.
        folder: where the runs' folders go.
        runs: the number of rounds. Each node or pair trains once in a round.
        at_once: how many nodes train at the same time; None: a whole group.

    Raises:
        ReperfError: Slurm refuses a job.
    """
    shuffled, lost = Random(report.seed), set[Nodes]()
    for number in range(1, runs + 1):
        left = [[place for place in group if place not in lost] for group in groups]
        what = "node" if plan.run.nodes == 1 else "pair"
        announce(f"round {number} of {runs} on {count(sum(map(len, left)), what)}")
        for group in shuffled.sample(left, len(left)):
            order = shuffled.sample(group, len(group))
            folders = {place: folder / str(number) / name_of_pair(place) for place in order}
            for place, each in folders.items():
                write_whole(each / PLAN, (plan.on_hosts(*place) if plan.aside.hosts else plan).text)
            jobs = max(1, (at_once or plan.run.nodes * len(order)) // plan.run.nodes)
            if plan.aside.hosts:
                given_up = _run_on_hosts(plan.aside.remote, folders, jobs)
            else:
                given_up = _run_all(_options(report, plan), folders, jobs)
            lost |= given_up.keys()
            for place in group:
                yield _result(plan, place, number, folders[place], given_up.get(place, ""))


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


def _run_all(
    options: Sequence[str], folders: Mapping[Nodes, Path], at_once: int
) -> dict[Nodes, str]:
    """Run a job on each node or pair until all have ended.

    Returns:
        Those without a run, and why: Slurm refuses the job, or has not started it in time.
    """
    waiting, jobs, given_up = list(folders), dict[str, Nodes](), dict[Nodes, str]()
    begun = time.monotonic()
    try:
        while waiting or jobs:
            for place in waiting[: at_once - len(jobs)]:
                waiting.remove(place)
                begun = time.monotonic()
                try:
                    jobs[_submit(options, place, folders[place])] = place
                except ReperfError as error:
                    given_up[place] = str(error)
            time.sleep(_LOOK_SECONDS)
            with suppress(ReperfError):  # it is busy: another look follows
                lines = ask("squeue", f"--name={SURVEY_JOB}", "--me", "--format=%i|%T")
                states = {job: state for job, state, *_ in lines}
                if time.monotonic() - begun > WAIT_SECONDS:
                    idle = [job for job in jobs if states.get(job) == "PENDING"]
                    given_up |= {jobs[job]: f"no job in {WAIT_SECONDS} s" for job in idle}
                    cancel(idle)
                jobs = {job: place for job, place in jobs.items() if job in states}
    finally:
        cancel(jobs)
    return given_up


def _run_on_hosts(remote: str, folders: Mapping[Nodes, Path], at_once: int) -> dict[Nodes, str]:
    """Train on each host or pair until all have ended; a pair's first host starts its run.

    Returns:
        Those that trained nothing, and why: `remote` does not reach them, or they are in use.
    """

    def run(place: Nodes) -> str:
        log = folders[place] / "job.log"
        with log.open("wb") as stream:
            subprocess.run(
                command_on(remote, place[:1], _train(folders[place])),
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=subprocess.STDOUT,
                check=False,
            )
        if (folders[place] / RUN_LOG).exists():
            return ""
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
        return printable(" | ".join(lines) or "no answer")

    with ThreadPoolExecutor(at_once) as pool:
        reasons = dict(zip(folders, pool.map(run, folders), strict=True))
    return {place: reason for place, reason in reasons.items() if reason}


def _train(folder: Path) -> list[str]:
    return [sys.executable, "-m", "reperf.training", "--once", str(folder / PLAN)]


def _submit(options: Sequence[str], nodes: Nodes, folder: Path) -> str:
    """Submit a job for some nodes; returns its number."""
    train = shlex.join(_train(folder))
    where = [
        f"--nodelist={','.join(nodes)}",
        f"--job-name={SURVEY_JOB}",
        f"--output={folder}/job.log",
    ]
    ((job, *_),) = ask("sbatch", "--parsable", *options, *where, f"--wrap=exec {train}")
    return job.partition(";")[0]


def cancel(jobs: Iterable[str]) -> None:
    """Cancel some jobs, of which any may have ended."""
    if jobs := list(jobs):
        ask("scancel", *jobs)


def _result(plan: RunPlan, nodes: Nodes, number: int, folder: Path, given_up: str) -> SurveyedRun:
    """What a run gave: its throughput by the window rule, and what it computed.

    `given_up` says why it has not begun; "" if it has.
    """
    log = folder / RUN_LOG
    known: dict[str, Any] = {"node": name_of_pair(nodes), "round": number, "log": str(log)}
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
