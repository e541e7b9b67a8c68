"""Slurm, as seen from where runs are submitted: what to ask it for, and what to check first."""

import getpass
import os
import re
import shlex
import shutil
import sys
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from subprocess import TimeoutExpired
from typing import TYPE_CHECKING, Any, NamedTuple

import psutil

from reperf.config import Report, Suite, topology_shape
from reperf.config.site import gpus_option
from reperf.errors import ReperfError
from reperf.programs import ended
from reperf.text import count, printable

if TYPE_CHECKING:
    from reperf.plans.run_plan import RunPlan

JOB_NAME = "reperf"
"""How the names of our jobs start: slurm-shell-jobname-prefix in slurm/config.yaml."""
SURVEY_JOB = f"{JOB_NAME}_survey"  # the name of a survey's jobs

_COMMANDS = ("sbatch", "scancel", "scontrol", "sinfo", "squeue", "srun")
_MEMORY_FILE_SYSTEMS = ("devtmpfs", "ramfs", "tmpfs")
_ANSWER_SECONDS = 60
_OUT_OF_USE = re.compile(r"down|drain|error|fail|inval|unk|\w+\*")
"""The states of nodes that start no job, until somebody or something mends them; one with a star
does not answer."""


def ask(*command: str) -> list[tuple[str, ...]]:
    """The lines that a Slurm command prints, without the header, each split at its bars."""
    headless = ("--noheader",) if command[0] in ("sinfo", "squeue") else ()
    try:
        answer = ended([*command, *headless], time_limit=_ANSWER_SECONDS)
    except FileNotFoundError:
        raise ReperfError(f"no Slurm on this machine: {command[0]} not found") from None
    except TimeoutExpired:
        raise ReperfError(f"Slurm: no answer to {command[0]} in {_ANSWER_SECONDS} s") from None
    if answer.returncode:
        raise ReperfError(f"Slurm: {' '.join(answer.stderr.split()) or 'no answer'}")
    return [tuple(line.split("|")) for line in answer.stdout.splitlines()]


def resources_of_job(
    report: Report,
    plans: "Collection[RunPlan]",
    plan_of: "Callable[[Any], RunPlan]",
    times: int = 1,
) -> dict[str, Any]:
    """What a rule that starts trainers asks Slurm for; nothing without a cluster.

    Args:
        plan_of: what a job trains, by its wildcards; `plans` are those of all jobs.
        times: how many of its time limits a job may take.
    """
    cluster = report.slurm
    if cluster is None:
        return {}

    def cpus(plan: "RunPlan") -> int:
        of_servers = plan.run.servers.cpus if plan.run.servers else 0
        return plan.run.devices_per_node * report.cpus_per_device + of_servers

    def options(plan: "RunPlan") -> str:
        nodes = [f"--nodes={plan.run.nodes}", "--ntasks-per-node=1"]
        on_gpus = plan.run.device == "cuda"
        gpus = [gpus_option(cluster.gres, plan.run.devices_per_node)] if on_gpus else []
        exclusive = ["--exclusive"] if cluster.exclusive else []
        # Slurm's default is a part of the memory, though nobody else can use an exclusive node's.
        memory = ["--mem=0"] if cluster.exclusive and cluster.memory_mb is None else []
        return shlex.join([*nodes, *gpus, *exclusive, *memory, *cluster.options])

    def minutes(plan: "RunPlan") -> int:
        return -(-times * plan.aside.time_limit // 60) + cluster.spare_minutes

    def of_each(value_of: "Callable[[RunPlan], int | str]") -> object:
        """A constant where all jobs ask for the same: Snakemake is slow to call functions."""
        values = {value_of(plan) for plan in plans}
        return values.pop() if len(values) == 1 else lambda wildcards: value_of(plan_of(wildcards))

    resources = {
        "tasks": of_each(lambda plan: plan.run.nodes),
        "cpus_per_task": of_each(cpus),
        "sbatch_options": of_each(options),
        "runtime": of_each(minutes),
        "mem_mb": cluster.memory_mb,
        "slurm_partition": cluster.partition,
        "slurm_account": cluster.account,
    }
    return {name: value for name, value in resources.items() if value is not None}


def check_commands() -> None:
    """Refuse a machine without Slurm."""
    for command in _COMMANDS:
        if shutil.which(command) is None:
            raise ReperfError(
                f"no Slurm on this machine: {command} not found; "
                "allowed: a cluster's login node, or no --profile"
            )


def cancel_left_jobs() -> None:
    """Cancel the jobs that a killed call has left in this folder, which this one must hold."""
    if jobs := cancel_jobs(Path.cwd()):
        named = " ".join(jobs)
        print(f"reperf: cancelling the jobs of a killed workflow: {named}", file=sys.stderr)
    while _jobs_of(Path.cwd()):
        time.sleep(1)


def trains(dag: Any) -> bool:  # noqa: ANN401 - Snakemake's own
    """Whether any job of a call trains: all others run where Snakemake was called."""
    return any(job.rule.name in ("train", "largest") for job in dag.needrun_jobs())


def nodes_of(job: str) -> tuple[tuple[str, ...], int]:
    """The names of a job's nodes, in its order, and how many CPUs it has on each."""
    ((names, cpus),) = ask("squeue", f"--job={job}", "--format=%N|%C")
    nodes = tuple(name for (name,) in ask("scontrol", "show", "hostnames", names))
    return nodes, int(cpus) // len(nodes)


def check_allocation(report: Report) -> None:
    """Refuse a job of Slurm in which runs cannot start, and say for which ones it is too small.

    Runs start on the first node of a job, whose load and hardware a record describes.
    """
    check_commands()
    job, here = os.environ["SLURM_JOB_ID"], os.environ.get("SLURMD_NODENAME", "")
    nodes, _ = nodes_of(job)
    if here != nodes[0]:
        where = here or "no node of a job"
        raise ReperfError(
            f"Slurm's job {job}: called on {where}; allowed: on {nodes[0]}, its first node, by "
            "sbatch or by srun --overlap --nodes=1 --ntasks=1 --pty bash"
        )
    every = dict.fromkeys(topology for _, topology in report.asked)
    large = [name for name in every if topology_shape(name)[0] > len(nodes)]
    if large:
        print(
            f"reperf: Slurm's job {job} has {count(len(nodes), 'node')}: runs on "
            f"{', '.join(large)} need a larger one",
            file=sys.stderr,
        )


def check_cluster(report: Report) -> None:
    """Refuse to submit what cannot run, and say what must wait for nodes that are out of use."""
    check_commands()
    check_shared(Path.cwd())
    known = ask("sinfo", "--Node", "--format=%P|%c|%G|%N|%T")
    partitions = list(dict.fromkeys(name.rstrip("*") for name, *_ in known))
    default = next((name.rstrip("*") for name, *_ in known if name.endswith("*")), None)
    assert report.slurm
    partition = report.slurm.partition or default
    if partition not in partitions:
        raise ReperfError(
            f"cluster.partition: {partition or 'left out, and there is no default'}; "
            f"allowed: {', '.join(partitions)}"
        )
    excluded = excluded_by(report.slurm.options)
    nodes = [
        _Node(name, state, int(cpus.rstrip("+")), gpus_of(resources, report.slurm.gres))
        for of, cpus, resources, name, state in known
        if of.rstrip("*") == partition and name not in excluded
    ]
    for part in report.of_each_device():
        devices = {
            node: node.gpus if part.device == "cuda" else node.cpus // report.threads_per_device
            for node in nodes
        }
        sizes = list(devices.values())
        for suite, topology in _that_cannot_start(part, sizes):
            wanted = topology_shape(topology)[1]
            most = min(wanted, max(sizes, default=0))
            raise ReperfError(
                f"suite {suite.name}: topology {topology} is too large: "
                f"{sum(size >= wanted for size in sizes)} of {len(sizes)} nodes of partition "
                f"{partition} have {wanted} devices or more; "
                f"allowed: at most {sum(size >= most for size in sizes)}n{most}g"
            )
        _check_servers(part, partition, [node.cpus for node in nodes])
        if waiting := _must_wait(part, devices):
            print(printable(f"reperf: {waiting}"), file=sys.stderr)


class _Node(NamedTuple):
    name: str
    state: str
    cpus: int
    gpus: int


def _must_wait(report: Report, devices: Mapping[_Node, int]) -> str:
    """Which topologies wait for nodes that are out of use, in one line; "" if all can start."""
    out = [node for node in devices if _OUT_OF_USE.match(node.state)]
    usable = [number for node, number in devices.items() if node not in out]
    too_large = [topology for _, topology in _that_cannot_start(report, usable)]
    if not too_large:
        return ""
    waiting = ", ".join(dict.fromkeys(too_large))
    states = ", ".join(f"{node.name} ({node.state})" for node in out)
    return f"runs on {waiting} wait until nodes are back that Slurm cannot use: {states}"


def excluded_by(options: Sequence[str]) -> set[str]:
    """The nodes that options of sbatch leave out."""
    names = ",".join(one[10:] for one in options if one.startswith("--exclude="))
    return {name for (name,) in ask("scontrol", "show", "hostnames", names)} if names else set()


def gpus_of(resources: str, gres: str | None = None) -> int:
    """The GPUs in a node's resources, such as "gpu:v100:8(S:0-1),license:2"; of `gres` alone."""
    of_type = re.escape(gres) if gres and ":" in gres else r"gpu(?::[^:,()]+)?"
    return sum(map(int, re.findall(rf"(?:^|,){of_type}:(\d+)", resources)))


def _that_cannot_start(report: Report, sizes: list[int]) -> Iterator[tuple[Suite, str]]:
    """The topologies of suites that nodes of these sizes, in devices, cannot hold."""
    for suite, topology in report.asked:
        nodes, devices = topology_shape(topology)
        if sum(size >= devices for size in sizes) < nodes:
            yield suite, topology


def _check_servers(report: Report, partition: str, sizes: list[int]) -> None:
    """Refuse servers for which nodes of these sizes, in CPUs, have no room beside the trainers."""
    suites = [suite for suite in report.suites if any(entry.servers for entry in suite.entries)]
    for run in (run for suite in suites for run in report.runs(suite) if run.servers):
        assert run.servers
        wanted = run.devices_per_node * report.cpus_per_device + run.servers.cpus
        enough = sum(size >= wanted for size in sizes)
        if enough < run.nodes:
            raise ReperfError(
                f"suite {run.suite}: {run.entry} on {run.topology} needs {wanted} CPUs a node: "
                f"{enough} of {len(sizes)} nodes of partition {partition} have as many; "
                "allowed: fewer servers, or fewer threads"
            )


def check_shared(folder: Path) -> None:
    """Refuse a folder in this machine's memory; only `reperf doctor` asks the nodes."""
    mounts = {part.mountpoint: part.fstype for part in psutil.disk_partitions(all=True)}
    place = next(str(path) for path in (folder, *folder.parents) if str(path) in mounts)
    if mounts[place] in _MEMORY_FILE_SYSTEMS:
        raise ReperfError(
            f"{folder}: not shared with the cluster's nodes: {mounts[place]} is this machine's "
            "memory; allowed: a folder that all nodes see at the same path"
        )


class JobEnd(NamedTuple):
    """How a job ended, in Slurm's own words."""

    state: str  # such as TIMEOUT or NODE_FAIL
    text: str  # all of it on one line

    @property
    def is_news(self) -> bool:
        """Whether it says more than that the job's own command ended, well or not."""
        return self.state != "COMPLETED" and "NonZeroExitCode" not in self.text


def end_of_job(job: str) -> JobEnd:
    """What Slurm says of a job that has ended, and of those of its nodes that it cannot use now."""
    try:
        ((line, *_),) = ask("scontrol", "--oneliner", "show", "job", job)
        match = re.search(r" JobState=(\S+) Reason=(.*?) Dependency=", line)
        state, reason = match.groups() if match else ("", "")
        words = dict(re.findall(r" (ExitCode|NodeList)=(\S+)", line))
        code, nodes = words.get("ExitCode", ""), words.get("NodeList", "")
    except (ReperfError, ValueError):  # it forgets jobs; a database, if there is one, does not
        options = ("--allocations", "--noheader", "--parsable2", f"--jobs={job}")
        lines = ask("sacct", *options, "--format=State,ExitCode,NodeList,Reason")
        if not lines or len(lines[0]) < 4:
            raise ReperfError(f"Slurm: no job {job}") from None
        state, code, nodes, reason = lines[0][:4]
    parts = [state]
    parts += [reason] * (reason not in ("", "None"))
    parts += [f"exit code {code}"] * (code not in ("", "0:0"))
    on = f" on {nodes}" if nodes not in ("", "(null)", "None assigned") else ""
    lost = _out_of_use(nodes) if on else []
    text = "; ".join([f"Slurm's job {job}{on}: {', '.join(parts)}", *lost])
    return JobEnd(state.split()[0] if state else "", printable(text))


def _out_of_use(nodes: str) -> list[str]:
    """Those of some nodes that start no jobs now, each with its state and Slurm's reason."""
    lines = ask("sinfo", f"--nodes={nodes}", "--Node", "--format=%N|%T|%E")
    of_nodes = {name: (state, "|".join(why)) for name, state, *why in lines}
    return [
        f"{name} is {state}" + (f" ({why})" if why not in ("", "none") else "")
        for name, (state, why) in of_nodes.items()
        if _OUT_OF_USE.match(state)
    ]


def reasons_of_waiting(jobs: Collection[str]) -> Counter[str]:
    """Why some of our own jobs wait, as Slurm says: Priority, Resources, ...; with their number."""
    return Counter("|".join(why) for job, *why in _own("%i|%r", "pending") if job in jobs)


def preempted(jobs: Collection[str]) -> set[str]:
    """Which of some of our own jobs Slurm has ended for the sake of others."""
    return {job for (job,) in _own("%i", "preempted") if job in jobs}


def _own(fields: str, *states: str) -> list[tuple[str, ...]]:
    """The fields of this user's jobs, of those in some state or of all that are not over."""
    of_states = [f"--states={state}" for state in states]
    return ask("squeue", f"--user={getpass.getuser()}", *of_states, f"--format={fields}")


def status_command() -> str:
    """The command that says how a job ended: sacct if a database keeps accounts, else squeue."""
    settings = ask("scontrol", "show", "config")
    setting = r"AccountingStorageType\s*=.*/slurmdbd"
    return "sacct" if any(re.match(setting, line) for line, *_ in settings) else "squeue"


def cancel_jobs(folder: Path) -> list[str]:
    """Cancel the jobs of workflows in a folder, and return their numbers.

    Snakemake does not where it is interrupted while it asks for the state of jobs.
    """
    if jobs := _jobs_of(folder):
        ask("scancel", *jobs)
    return jobs


def _jobs_of(folder: Path) -> list[str]:
    """The jobs of workflows in this folder, waiting or running."""
    here = str(folder)
    jobs = _own("%i|%j|%Z")
    return [job for job, name, at in jobs if name.startswith(f"{JOB_NAME}_") and at == here]
