"""One training run: its command, its launch, how it ended, its record."""

import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
from datetime import UTC, datetime
from pathlib import Path

from reperf.config import Run
from reperf.environments import read_environment
from reperf.errors import ReperfError
from reperf.files import sha256, whole_file
from reperf.launch import Outcome, launch
from reperf.logs import mllog
from reperf.machine import describe_host
from reperf.records import RunRecord, Status
from reperf.systems import ROOT, SYSTEMS, WORKLOADS, System, load_systems
from reperf.telemetry import gpu_meter

FINAL_STATUSES = ("ok", "oom", "unsupported")
"""How a run can end that another try would not change."""


def train(run: Run, *, time_limit: float, attempt: int, last_attempt: bool) -> None:
    """Train once, and leave train.log and run.json in the run's folder.

    Each try keeps its own log and record under tries/, whatever becomes of it.

    Raises:
        ReperfError: the try failed and another one is allowed.
    """
    system = load_systems()[run.system]
    folder = run.folder / "tries" / _next_try(run.folder / "tries")
    folder.mkdir(parents=True)
    record = _try_once(run, system, folder / "train.log", time_limit, attempt)
    record.write(folder / "run.json")
    if record.status not in FINAL_STATUSES and not last_attempt:
        raise ReperfError(f"{folder}/train.log: {record.status}: {record.reason}; trying again")
    for name in ("train.log", "run.json"):
        with (folder / name).open("rb") as source, whole_file(run.folder / name, "wb") as target:
            shutil.copyfileobj(source, target)


def _next_try(tries: Path) -> str:
    taken = [int(path.name) for path in tries.glob("*") if path.name.isdigit()]
    return str(max(taken, default=0) + 1)


def _try_once(run: Run, system: System, log: Path, time_limit: float, attempt: int) -> RunRecord:
    command = local_command(run, system)
    variables = run_variables(run, system)
    started = datetime.now(UTC)
    with gpu_meter(run.devices_per_node if run.device == "cuda" else 0) as meter:
        path = f"{system.environment.absolute() / 'bin'}{os.pathsep}{os.environ['PATH']}"
        outcome = launch(
            command, log=log, time_limit=time_limit, variables={"PATH": path, **variables}
        )
    if outcome.abandoned:
        raise ReperfError(f"{log}: ended, because the workflow that asked for it is gone")
    facts = mllog.read_facts(log)
    status, reason = judge(run, outcome, log, facts, time_limit)
    commit, dirty = _git_state()
    return RunRecord(
        status=status,
        reason=reason,
        run=run,
        attempt=attempt,
        command=tuple(command),
        variables=variables,
        environment=read_environment(system.environment),
        git_commit=commit,
        git_dirty=dirty,
        host=describe_host(),
        started=started.isoformat(timespec="milliseconds"),
        ended=datetime.now(UTC).isoformat(timespec="milliseconds"),
        seconds=round(outcome.seconds, 3),
        exit_code=outcome.exit_code,
        last_heard=outcome.last_heard,
        peak_memory_bytes=tuple(facts.get("peak_memory_bytes", ())),
        power=meter.power,
        log_sha256=sha256(log),
    )


def local_command(run: Run, system: System) -> list[str]:
    """The command that trains on this machine: the framework's launcher, then the trainer."""
    places = {
        "nodes": run.nodes,
        "node_rank": 0,
        "devices_per_node": run.devices_per_node,
        "world_size": run.world_size,
        "head": "127.0.0.1",
        "port": _free_port(),
    }
    launcher, *arguments = (part.format(**places) for part in system.launch)
    return [
        str(system.environment / "bin" / launcher),
        *arguments,
        os.path.relpath(system.trainer),
        *trainer_flags(run, system),
    ]


def trainer_flags(run: Run, system: System) -> list[str]:
    """The flags that every trainer takes, and those of the run's variant."""
    flags = {
        "workload": run.workload,
        "precision": run.precision,
        "batch-size": run.batch_size,
        "iterations": run.iterations,
        "print-every": run.print_every,
        "input": run.input,
        "image-size": run.image_size,
        "device": run.device,
        "threads": run.threads,
        "seed": run.seed,
    }
    if run.data is not None:
        flags["data"] = run.data
    variant = system.variants[run.variant].flags if run.variant else ()
    return [*(part for key, value in flags.items() for part in (f"--{key}", str(value))), *variant]


def run_variables(run: Run, system: System) -> dict[str, str]:
    """The environment variables that a launch sets, beside the PATH to the environment."""
    used = range(run.devices_per_node) if run.device == "cuda" else ()
    variant = system.variants[run.variant].environment if run.variant else {}
    return {
        "PYTHONPATH": str(SYSTEMS),
        "PYTHONUNBUFFERED": "1",
        "OMP_NUM_THREADS": str(run.threads),
        "CUDA_VISIBLE_DEVICES": ",".join(map(str, used)),
        **variant,
    }


def judge(
    run: Run, outcome: Outcome, log: Path, facts: dict, time_limit: float
) -> tuple[Status, str]:
    """Decide how a run ended, and say why in one line if not well."""
    if outcome.timed_out:
        return "timeout", f"no end after {time_limit:g} s; {_last_heard(run, outcome)}"
    if excuse := mllog.read_excuse(log):
        return excuse
    if outcome.exit_code != 0:
        return _crash(run, outcome, _tail(log))
    expected = WORKLOADS[run.workload]["parameters"]
    if expected is not None and facts.get("parameters") != expected:
        said = facts.get("parameters", "nothing")
        return "failed", f"the trainer reported {said} parameters; {run.workload} has {expected}"
    if "run_stop" not in facts:
        return "failed", f"the trainer left without an end line; {_last_heard(run, outcome)}"
    return "ok", ""


def _crash(run: Run, outcome: Outcome, tail: str) -> tuple[Status, str]:
    """What to say of a launcher that did not exit with 0."""
    signals = re.findall(r"\bSIG[A-Z0-9]+\b", tail)
    if outcome.exit_code < 0:
        signals.append(signal.Signals(-outcome.exit_code).name)
    # A launcher that has lost one rank to a signal ends the others with SIGTERM, and says so, too.
    signals.sort(key=lambda name: name == "SIGTERM")
    if "SIGKILL" in signals and outcome.out_of_memory_kills:
        return "oom", "a process was killed because the machine's memory was full"
    what = f"a process was ended by {signals[0]}" if signals else _last_error(tail)
    return "failed", f"{what or 'no error was printed'}; {_last_heard(run, outcome)}"


def _last_error(tail: str) -> str:
    """The last line that looks like the message of an exception."""
    errors = re.findall(
        r"^(?:\[[^\]]*\]:?)? *((?:[\w.]+)?(?:Error|Exception)\b.*)$", tail, re.MULTILINE
    )
    return errors[-1][:300] if errors else ""


def _last_heard(run: Run, outcome: Outcome) -> str:
    """Which rank has been silent longest."""
    heard = {last.rank: last for last in outcome.last_heard}
    silent = [rank for rank in range(run.world_size) if rank not in heard]
    if silent:
        return f"rank {silent[0]} of {run.world_size} was never heard of"
    last = min(heard.values(), key=lambda one: (one.iteration or 0, one.seconds))
    where = f"at iteration {last.iteration}" if last.iteration else "before its first iteration"
    return (
        f"rank {last.rank} of {run.world_size} was last heard of {where}, {last.seconds:.0f} s in"
    )


def _tail(log: Path, size: int = 20_000) -> str:
    with log.open("rb") as stream:
        stream.seek(max(0, log.stat().st_size - size))
        return stream.read().decode(errors="replace")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _git_state() -> tuple[str | None, bool | None]:
    """The commit that is checked out, and whether the tree differs from it."""

    def ask(command: str) -> str | None:
        answer = subprocess.run(
            shlex.split(command), check=False, capture_output=True, text=True, cwd=ROOT
        )
        return answer.stdout.strip() if answer.returncode == 0 else None

    if (commit := ask("git rev-parse HEAD")) is None:
        return None, None
    return commit, bool(ask("git status --porcelain --untracked-files=no"))
