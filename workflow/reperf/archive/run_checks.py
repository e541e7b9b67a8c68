"""What a run left in an archive, held against its plan, its log and its tries."""

import re
from datetime import UTC, datetime
from pathlib import Path
from shlex import join
from typing import Any

from reperf.archive.difference import difference
from reperf.builds import Build, LockBuild
from reperf.errors import ReperfError
from reperf.files import sha256
from reperf.layout import PLAN, RUN_LOG, RUN_RECORD, TRIES
from reperf.logs.formats import mllog
from reperf.plans.run_plan import RunPlan, trainer_flags, variables_of
from reperf.training.record import NOT_COMPARED, RunRecord
from reperf.training.train import LOST, said_in

CLOCK_IS_SET = 60.0
"""Seconds by which a machine's clock may be set while a run trains."""
_OTHER_ENDS = re.compile(
    rf"{LOST}|stopped from outside: |no end after |rank \d|server \d|the servers |the trainer "
)
"""How the reasons begin of runs that failed although their trainers said that they had ended."""
_PIN = re.compile(r"^([\w.-]+)(?:\[[^\]]*\])?==([^\s;]+)", re.MULTILINE)

Pairs = dict[str, tuple[Any, Any]]
"""What is compared -> what the archive has, and what it should have."""


def check_run(record: RunRecord, plan: RunPlan, asked: RunPlan, build: Build) -> None:
    """Refuse a run of which two parts of the archive say different things.

    Args:
        record: of the run; the plan is known to be its own.
        plan: the one beside it.
        asked: the one to which the archived configuration leads here.
        build: out of the archive.

    Raises:
        ReperfError: one line with the place and both values.
        FileNotFoundError: a file of a try is missing.
    """
    sources = {
        "as config.json asks": _as_asked(plan, asked),
        "as the archived trainers and locks have it": _as_archived(record, plan, build),
        f"as {PLAN} beside it has it": _as_planned(record, plan),
        f"as {RUN_LOG} beside it says": _as_logged(record),
        f"as the last of its {TRIES} has it": _as_tried(record),
    }
    for source, pairs in sources.items():
        held, due = ({name: pair[at] for name, pair in pairs.items()} for at in (0, 1))
        if fault := difference(held, due):
            raise ReperfError(f"{record.run.record}: {fault}, {source}")


def _as_asked(plan: RunPlan, asked: RunPlan) -> Pairs:
    both = [one.aside.model_dump(mode="json", exclude={"anew"}) for one in (plan, asked)]
    return {
        "cluster": (plan.cluster, asked.cluster),
        "data": (plan.data, asked.data),
        "aside": (both[0], both[1]),
    }


def _as_archived(record: RunRecord, plan: RunPlan, build: Build) -> Pairs:
    system, run, environment = build.system, plan.run, record.environment
    flags = trainer_flags(run, system)
    pairs: Pairs = {
        "recipe": (plan.build.recipe, build.recipe_digest),
        "folder": (Path(plan.build.folder).name, build.folder.name),
        "program": ([*plan.program[1:]], flags),
        "server": ([*plan.server[1:]], flags) if system.serve else ([*plan.server], []),
        "variables": (plan.variables, variables_of(run, system)),
    }
    if isinstance(build, LockBuild):
        pins = {_plain(name): pin for name, pin in _PIN.findall(build.lock.read_text())}
        found, python = environment.packages, build.settings.python
        due = {name: _pinned(one, pins.get(_plain(name), one)) for name, one in found.items()}
        is_pinned = f"{environment.python}.".startswith(f"{python}.")
        pairs["packages"] = (found, due)
        pairs["python"] = (environment.python, environment.python if is_pinned else python)
    return pairs


def _plain(package: str) -> str:
    return re.sub(r"[-_.]+", "-", package).lower()


def _pinned(found: str, pin: str) -> str:
    """The version that a lock allows; 2.13.0+cpu is a build of 2.13.0."""
    return found if pin in (found, found.partition("+")[0]) else pin


def _as_planned(record: RunRecord, plan: RunPlan) -> Pairs:
    run = record.run
    pairs: Pairs = {
        "trainer": (record.trainer, plan.trainer),
        "cluster": (record.cluster, plan.cluster),
        "largest": (record.largest is not None, plan.batch is not None),
        "slurm_job": (bool(record.slurm_job), plan.cluster is not None),
        "power": (record.power is not None, record.power is not None and run.device == "cuda"),
    }
    if record.data_set:
        pairs["data_set.name"] = (record.data_set.name, Path(run.data or "").parent.name)
    if record.status == "ok":
        set_later = (record.cluster or {}).get("variables", {})
        due = {name: value for name, value in plan.variables.items() if name not in set_later}
        pairs |= {
            "variables": ({name: record.variables.get(name) for name in due}, due),
            "command": _command(record, plan),
            "servers_command": (bool(record.servers_command), bool(run.servers)),
            "nodes": (len(record.nodes), run.nodes),
            "not_compared": (record.not_compared, NOT_COMPARED if run.together else ""),
        }
    return pairs


def _command(record: RunRecord, plan: RunPlan) -> tuple[Any, Any]:
    """The end of a run's command, and what its plan starts; on a cluster it is in one word."""
    sized = plan.with_batch(record.run.samples_per_device) if plan.batch else plan
    program = [*sized.program]
    if record.cluster is not None:
        line = record.command[-1] if record.command else ""
        return line, line if f" {join(program)} " in line else join(program)
    # The Python of an environment, and the words of the launcher, come before it.
    plain = record.environment.image is None
    start = 1 + len(plan.launch) if plain else max(len(record.command) - len(program), 0)
    return [*record.command[start:]], program


def _as_logged(record: RunRecord) -> Pairs:
    facts = mllog.read_facts(record.run.log)
    if record.status != "ok":
        ended = record.exit_code == 0 and "run_stop" in facts
        is_ok = ended and not _OTHER_ENDS.match(record.reason)
        return {"status": (record.status, "ok")} if is_ok else {}
    said = said_in(record.run, facts)
    due = record.model_copy(update=said).model_dump(mode="json", include={*said})
    held = record.model_dump(mode="json", include={*said})
    return {
        **{name: (held[name], due[name]) for name in held},
        "reason": (record.reason, ""),
        "exit_code": (record.exit_code, 0),
        **_times(record),
    }


def _times(record: RunRecord) -> Pairs:
    """The times that cannot be right, and what is."""
    if record.span is None:
        return {"ended": (f"{record.started}, {record.ended}", "times in ISO 8601")}
    (begun, ended), took = record.span, record.seconds
    first, last = mllog.written_between(record.run.log) or record.span
    pairs: Pairs = {}
    if abs(ended - begun - took) > CLOCK_IS_SET + took / 100:
        pairs["seconds"] = (took, round(ended - begun, 3))
    if begun > first + CLOCK_IS_SET:
        pairs["started"] = (record.started, f"before {_utc(first)}")
    if ended < last - CLOCK_IS_SET:
        pairs["ended"] = (record.ended, f"after {_utc(last)}")
    return pairs


def _utc(time: float) -> str:
    return datetime.fromtimestamp(time, UTC).isoformat(timespec="milliseconds")


def _as_tried(record: RunRecord) -> Pairs:
    folder = record.run.folder / TRIES
    numbers = sorted(int(one.name) for one in folder.glob("*") if one.name.isdigit())
    every = [*range(1, max(record.attempt, *numbers[-1:], 1) + 1)]
    if numbers != every:
        return {TRIES: (numbers, every)}
    for number in numbers:
        _check_try(folder / str(number), record)
    last = RunRecord.read(folder / str(numbers[-1]) / RUN_RECORD)
    held, due = (one.model_dump(mode="json") for one in (record, last))
    return {name: (held[name], due[name]) for name in held}


def _check_try(folder: Path, of: RunRecord) -> None:
    """Refuse a try whose record is not that of what lies beside it."""
    path = folder / RUN_RECORD
    if not path.exists():  # it was killed before it had one
        return
    record = RunRecord.read(path)
    pairs: Pairs = {"run": (str(record.run.folder), str(of.run.folder))}
    if not record.reason.startswith(LOST):
        pairs["log_sha256"] = (record.log_sha256, sha256(folder / RUN_LOG))
    if record.record_version == of.record_version:
        pairs["plan"] = (record.plan, RunPlan.read(folder / PLAN).digest)
    held, due = ({name: pair[at] for name, pair in pairs.items()} for at in (0, 1))
    if fault := difference(held, due):
        raise ReperfError(f"{path}: {fault}, as the files beside it have it")
