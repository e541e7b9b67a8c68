"""One training run: its command, its launch, how it ended, its record."""

import os
import re
import signal
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError
from trainers.contract.stages import name_of
from trainers.contract.waiting import OR, QUIET

from reperf.builds import build_of, read_environment
from reperf.builds.fitness import why_not_compiled, why_unfit
from reperf.config import Run
from reperf.data.set_read import read_of_set
from reperf.errors import ReperfError
from reperf.files import sha256
from reperf.layout import ROOT, RUN_LOG, RUN_RECORD
from reperf.logs.events import MARK, is_number
from reperf.logs.formats import mllog
from reperf.machine import describe_host, why_not_in_precision
from reperf.plans.run_plan import RunPlan
from reperf.programs import answer_of
from reperf.records.diagnosis import matrix_rate
from reperf.records.run_record import (
    FINAL,
    LONGEST_REASON,
    NOT_COMPARED,
    LargestBatch,
    LastHeard,
    RunRecord,
    Setting,
)
from reperf.systems.workloads import load_workloads
from reperf.training.launch import Outcome
from reperf.training.load import Watch
from reperf.training.places import Place
from reperf.training.start import Start, start_of, why_not_planned
from reperf.training.telemetry import gpu_meters, power_of_window, used_gpus
from reperf.training.tries import LOST, STOPPED, ended_try, ended_well, keep, new_try, this_call
from reperf.values import Status

# Collectives have time limits of their own: gloo's are 30 s or more, NCCL's in torch ten minutes;
# TensorFlow waits for a sign of life for ten seconds, JAX for a hundred, and to meet for 300.
_GAVE_UP = re.compile(
    r"gloo::TimeoutException|Timed out waiting \d+ms|collective operation timeout"
    r"|stopped sending heartbeats|\bDEADLINE_EXCEEDED\b"
)

# What C++ and Python print when a process ends for lack of memory.
# "Allocator (GPU_0_bfc) ran out of memory trying to allocate" is no end: TensorFlow goes on.
_NO_MEMORY = re.compile(
    r"std::bad_alloc|^[\w.]*MemoryError\b|(?:[Ee]rror|what\(\)|[Ff]ailed)\b.*\b[Oo]ut of memory"
    # Slurm's step daemon, and srun.
    r"|\boom[-_]kill event|^srun: error: .*: Out Of Memory$"
    r"|\b(?:CUDNN|CUBLAS)_STATUS_ALLOC_FAILED|\bcudaErrorMemoryAllocation\b",
    re.MULTILINE,
)
# What the loader of libraries says, too, where their code may not be run.
_NO_PLACE = re.compile(r"failed to map segment from shared object|can't start new thread")

# What trainers.launchers says, of ranks and of servers.
_SERVER_ENDED = re.compile(
    r"\b(server \d{1,9} on \S{1,255} ended with \w{1,20}(?: \d+)?)$", re.MULTILINE
)
_RANK_ENDED = re.compile(
    r"\brank (\d{1,9}) on (\S{1,255}) ended with (SIG\w{1,20}|status) ?\d*$", re.MULTILINE
)

_OTHERS_END = re.compile(
    r"SIGTERM|^Killing subprocess |\brank \d{1,9} on \S+ ended with status", re.MULTILINE
)  # how launchers begin to say that they end what is left of a run

_FAR = 1 << 18  # bytes before a log's end, among which it may stand

_SHELL_SIGNALS = 128
"""What shells and container engines add to the number of the signal that ended a program."""


def train(
    plan: RunPlan, place: Callable[[Run], Place], *, attempt: int = 1, last: bool = True
) -> None:
    """Train once, and leave train.log and run.json in the run's folder.

    Each try keeps its own plan, log and record under tries/, whatever becomes of it. Where a try of
    this plan has come to its end already, it is taken up, and nothing is trained. A ReperfError
    says that the try failed and another is allowed, or that it was stopped from outside.

    Args:
        attempt: which try of this call it is, from 1.
        last: whether this call makes no further try, so that a failure is the run's end.
    """
    run_folder = plan.run.folder
    search = LargestBatch.read(plan.batch) if plan.batch else None
    if not plan.aside.anew and (ended := ended_try(plan, search.batch_size if search else None)):
        keep(ended, run_folder)
        return
    resolved = plan.with_batch(search.batch_size) if search else plan
    before, folder = ended_well(plan), new_try(run_folder, plan)
    if search and search.status != "ok":
        # The trial that left no batch to try wrote the log and the record.
        keep(Path(search.trials[-1].log).parent, folder)
        asked = {"run": resolved.run, "plan": plan.digest, "attempt": attempt, "call": this_call()}
        ended_so = {"status": search.status, "reason": search.reason, "largest": search}
        trial = RunRecord.read(folder / RUN_RECORD)
        trial.model_copy(update=asked | ended_so).write(folder / RUN_RECORD)
        keep(folder, run_folder)
        return
    stopped, record = try_once(
        resolved,
        place(resolved.run),
        folder,
        attempt=attempt,
        digest=plan.digest,
        search=search,
        ended_well_before=before,
    )
    if stopped or (record.status not in FINAL and not last):
        raise ReperfError(f"{folder}/{RUN_LOG}: {record.status}: {record.reason}")
    keep(folder, run_folder)


def try_once(
    plan: RunPlan,
    place: Place,
    folder: Path,
    *,
    attempt: int,
    digest: str = "",
    search: LargestBatch | None = None,
    ended_well_before: int = 0,
) -> tuple[bool, RunRecord]:
    """Train, and write the log and the record of this try; see `train`.

    Args:
        plan: with its batch size known; `digest` is that of the plan as it was made.

    Returns:
        Whether the try was stopped from outside, and its record.
    """
    run, log = plan.run, folder / RUN_LOG
    log.touch()
    start = start_of(plan, place, plan.program)
    commit, dirty = checked_out_commit(ROOT)
    data_sha256, data_set = read_of_set(run.data, run.input)
    started = datetime.now(UTC)
    # Written now, in case nobody lives to record how the run ended, and again at the end.
    record = RunRecord(
        status="failed",
        reason=f"{LOST}: ended before its end could be recorded",
        run=run,
        plan=digest or plan.digest,
        call=this_call(),
        attempt=attempt,
        ended_well_before=ended_well_before,
        command=tuple(start.trainers.words),
        servers_command=tuple(start.servers.words) if start.servers else (),
        variables=start.variables,
        inherited=start.inherited,
        environment=read_environment(build_of(run)),
        trainer=plan.trainer,
        cluster=place.cluster,
        slurm_job=place.job,
        data_sha256=data_sha256,
        data_set=data_set,
        git_commit=commit,
        git_dirty=dirty,
        host=describe_host(),
        nodes=place.nodes,
        started=started.isoformat(timespec="milliseconds"),
        ended=started.isoformat(timespec="milliseconds"),
        seconds=0,
        exit_code=None,
        largest=search,
        log_sha256=sha256(log),
    )
    record.write(folder / RUN_RECORD)
    try:
        return _to_its_end(plan, place, folder, start, record)
    except SystemExit:  # told to end before the launch, or after it
        reason = f"{STOPPED}: before its end could be recorded"
        update = {"reason": reason, "log_sha256": sha256(log)}
        record.model_copy(update=update).write(folder / RUN_RECORD)
        raise


def _to_its_end(
    plan: RunPlan, place: Place, folder: Path, start: Start, record: RunRecord
) -> tuple[bool, RunRecord]:
    """Launch a try of which there is a record, and complete the record."""
    run, window, time_limit = plan.run, plan.aside.window, plan.aside.time_limit
    log = folder / RUN_LOG
    on_gpus, hosts = run.device == "cuda", [record.host]
    why = why_unfit(build_of(run), hosts) if on_gpus else None
    if why := why or why_not_in_precision(run, hosts) or why_not_compiled(run):
        record = record.model_copy(update={"status": "unsupported", "reason": why})
        record.write(folder / RUN_RECORD)
        return False, record
    seen = {**start.trainers.environment, **start.variables}
    metered = used_gpus(seen, run.devices_per_node) if on_gpus else ()
    watch = Watch(metered)
    with gpu_meters(place.nodes, metered, place.meters, place.environment) as meters:
        outcome = start.launched(place, run, log=log, time_limit=time_limit)
    facts = mllog.read_facts(log)
    reported = reported_in(run, facts)
    computed = reported.get("computed_in")
    status, reason = judge(run, outcome, log, facts, time_limit)
    if status in FINAL and (why := why_not_planned(plan)):
        status, reason = "failed", f"changed while it ran: {why}"[:LONGEST_REASON]
    record = record.model_copy(
        update={
            "status": status,
            "reason": reason,
            "ended": datetime.now(UTC).isoformat(timespec="milliseconds"),
            "seconds": round(outcome.seconds, 3),
            "exit_code": outcome.exit_code,
            "seconds_to_print": outcome.seconds_to_print,
            "last_heard": _by_number(outcome.last_heard),
            "servers_heard": _by_number(outcome.servers_heard),
            "not_compared": NOT_COMPARED if run.together else "",
            **reported,
            "matrix_rate": computed and matrix_rate(run, place.nodes[0], computed.compute),
            # Slurm, or an engine that must be told to remove containers, starts them elsewhere.
            "load": watch.load(all_descend=place.is_local and not start.trainers.clean_up),
            "power": power_of_window(meters, window, mllog.read_ends(log, window)),
            "log_sha256": sha256(log),
        }
    )
    record.write(folder / RUN_RECORD)
    return bool(outcome.stopped), record


def _by_number(heard: Mapping[int, LastHeard]) -> tuple[LastHeard, ...]:
    return tuple(heard[number] for number in sorted(heard))


def judge(
    run: Run, outcome: Outcome, log: Path, facts: dict[str, Any], time_limit: float
) -> tuple[Status, str]:
    """Decide how a run ended, and say why in one line if it did not end well."""
    status, reason = _judge(run, outcome, log, facts, time_limit)
    return status, " ".join(reason.split())[:LONGEST_REASON]


def _judge(
    run: Run, outcome: Outcome, log: Path, facts: dict[str, Any], time_limit: float
) -> tuple[Status, str]:
    if outcome.stopped:
        return "failed", f"{STOPPED}: {outcome.stopped}; {_last_heard(run, outcome)}"
    if outcome.timed_out:
        why = f"{_waited_for(_tail(log))}{_last_heard(run, outcome)}"
        return "timeout", f"no end after {time_limit:g} s; {why}"
    if outcome.servers_ended is not None:
        # Trainers say much when their servers have gone.
        return _servers_ended(run, outcome, _tail(log, _FAR))
    ended = outcome.exit_code == 0 and "run_stop" in facts
    if not ended and (excuse := mllog.read_excuse(log)):
        return excuse
    if outcome.exit_code != 0:
        return _crash(run, outcome, log)
    wrong = _wrong_model(run, facts)
    if not wrong and not ended:
        wrong = f"the trainer exited without an end line; {_last_heard(run, outcome)}"
    unended = [rank for rank in range(run.world_size) if rank not in outcome.done]
    if not wrong and unended:
        wrong = f"rank {unended[0]} of {run.world_size} ended without saying that it was done"
        wrong += f"; {_last_heard(run, outcome)}"
    return ("failed", wrong) if wrong else ("ok", "")


def _servers_ended(run: Run, outcome: Outcome, tail: str) -> tuple[Status, str]:
    """The status and the reason where servers ended before the trainers did."""
    named = _SERVER_ENDED.findall(tail)
    which = named[0] if named else f"the servers ended with status {outcome.servers_ended}"
    if "SIGKILL" in which and outcome.out_of_memory_kills:
        return "oom", f"{which} because the machine's memory was full"
    return "failed", f"{which}, before the trainers; {_last_heard(run, outcome)}"


def _wrong_model(run: Run, facts: dict[str, Any]) -> str:
    """What is wrong with the model that was trained; "" if it is the workload's."""
    expected = load_workloads()[run.workload].parameters_of(run.shape)
    number = facts.get("parameters")
    if expected is None or number == expected:
        return ""
    number = number if is_number(number) else "no number of"
    return f"the trainer reported {number} parameters; {run.workload} has {expected}"


def reported_in(run: Run, facts: dict[str, Any]) -> dict[str, Any]:
    """The fields of a run's record that its log says, without what no such field can hold."""
    peaks, configuration = facts.get("peak_memory_bytes"), facts.get("configuration")
    fits = isinstance(peaks, list) and len(peaks) <= run.world_size
    reported = {
        "peak_memory_bytes": peaks if fits else (),
        "peak_memory_is": facts.get("peak_memory_is"),
        **{name: facts.get(name) for name in ("rank_seconds_alone", "rank_seconds_waited")},
        "computed_in": facts.get("precision"),
        "loader_threads": isinstance(configuration, dict) and configuration.get("loader_threads"),
    }
    fields: dict[str, Any] = {"settings": settings(facts)}
    for name, value in reported.items():
        with suppress(ValidationError):
            kind: Any = RunRecord.model_fields[name].annotation
            fields[name] = TypeAdapter(kind).validate_python(value)
    return fields


def settings(facts: dict[str, Any]) -> dict[str, Setting]:
    """What the trainer said to have set within its process; empty if it said nothing like it."""
    reported = facts.get("settings")
    items = reported.items() if isinstance(reported, dict) else ()
    return {
        name: value
        for name, value in items
        if isinstance(value, Setting)
        if f"{name}{value}".isprintable() and len(f"{name}{value}") <= LONGEST_REASON
    }


def _crash(run: Run, outcome: Outcome, log: Path) -> tuple[Status, str]:
    """The status and the reason of a launcher that did not exit with 0."""
    # Rank, host and signal, or "status": ranks on other nodes may say much, once one has gone.
    ended = _RANK_ENDED.findall(_tail(log, _FAR))
    tail = _tail(log)
    signals = [name for _, _, name in ended if name != "status"]
    signals += re.findall(r"\bSIG[A-Z0-9]{1,9}\b", tail)
    names = {known.value: known.name for known in signal.Signals}
    # Some launchers report a rank's signal as its exit code.
    codes = set(re.findall(r"\bcode -(\d+)\b", tail))
    signals += [name for number, name in names.items() if str(number) in codes]
    code = outcome.exit_code or 0
    number = -code if code < 0 else code - _SHELL_SIGNALS
    if 0 < number <= signal.SIGRTMAX:
        signals.append(names.get(number, f"signal {number}"))
    # A launcher that loses a rank to a signal ends the others with SIGTERM, and reports that, too.
    signals.sort(key=lambda name: name == "SIGTERM")
    if "SIGKILL" in signals and outcome.out_of_memory_kills:
        return "oom", "a process was killed because the machine's memory was full"
    # Nobody caught it, so the trainer could not report it.
    if _NO_MEMORY.search(tail) or (run.memory_limit and _NO_PLACE.search(tail)):
        which = _name_of_rank(run, *ended[0][:2]) if ended else "a process"
        return "oom", f"{which} ran out of memory and died; {_last_heard(run, outcome)}"
    # A rank that gives up waiting aborts, and its launcher ends the others.
    if _GAVE_UP.search(tail) and not set(signals) - {"SIGABRT", "SIGTERM"}:
        return "timeout", f"a rank gave up waiting for another; {_last_heard(run, outcome)}"
    what = ""
    if not {*signals} - {"SIGTERM"}:
        # The first one to fail has said why before its launcher ends the others.
        what = _last_error(_OTHERS_END.split(tail)[0])
    if not what:
        what = _ended(run, tail, ended, signals[0]) if signals else _last_error(tail)
    if run.container and not what:
        printed = [line for line in tail.splitlines() if line.strip() and "srun: " not in line]
        what = f"the last line from {run.container.engine} is: {printed[-1]}" if printed else ""
    return "failed", f"{what or 'no error was printed'}; {_last_heard(run, outcome)}"


def _ended(run: Run, tail: str, ended: Sequence[tuple[str, str, str]], by: str) -> str:
    """Which process a signal ended, and where, as far as the launcher says so."""
    # As torchrun does; it ends the others with SIGTERM.
    ranks = re.findall(r"^ *rank *: (\d+) \(.*\n *exitcode *: -(?!15\b)\d+ ", tail, re.MULTILINE)
    named = [(rank, host) for rank, host, name in ended if name == by]
    named += [(rank, "") for rank in ranks]
    return f"{_name_of_rank(run, *named[0]) if named else 'a process'} was ended by {by}"


def _name_of_rank(run: Run, rank: int | str, host: str = "") -> str:
    """As messages name a rank: "rank 2 (stage 1) on node3"."""
    pipeline = run.parallel.pipeline if run.parallel else ()
    name = name_of(int(rank), pipeline if int(rank) < sum(pipeline) else ())
    return f"{name} on {host}" if host else name


def _waited_for(tail: str) -> str:
    """The rank that others wait for and that waits for nobody itself; "" without one."""
    waits = {}
    for line in tail.splitlines():
        if match := re.search(
            rf"\b(rank \d+ \(stage \d+\)): (?!{QUIET} )(?:waits for (.+))?", line
        ):
            waits[match[1]] = (match[2] or "").split(OR)
        elif MARK.decode() in line:
            waits["rank 0 (stage 0)"] = [""]
    named = dict.fromkeys(name for every in waits.values() for name in every if name)
    silent = [name for name in named if not any(waits.get(name, ()))]
    silent.sort(key=lambda name: not name.startswith("rank "))
    return f"{silent[0]} is waited for; " if silent else ""


def _last_error(tail: str) -> str:
    errors = re.findall(
        r"^(?: *\d+: )?(?:\[[^\]\n]*\]:?)? *([\w.]*(?:Error|Exception)\b.*)$", tail, re.MULTILINE
    )
    return errors[-1] if errors else ""


def _last_heard(run: Run, outcome: Outcome) -> str:
    """Which rank is furthest behind, if one is, and when it was last heard of; of servers, too."""
    ranks = [_name_of_rank(run, rank) for rank in range(run.world_size)]
    text = _last_of("ranks", ranks, outcome.last_heard, outcome.silent)
    if run.servers_in_all:
        servers = [f"server {number}" for number in range(run.servers_in_all)]
        text += "; " + _last_of("servers", servers, outcome.servers_heard)
    return text


def _last_of(
    kind: str, names: list[str], heard: Mapping[int, LastHeard], hung: Collection[int] = ()
) -> str:
    """Which rank or server is furthest behind, and since when; of those that `hung`, if any."""
    unheard = [name for number, name in enumerate(names) if number not in heard]
    if unheard:
        return f"{unheard[0]} of {len(names)} was never heard of"
    suspects = [heard[number] for number in hung] or [*heard.values()]
    last = min(suspects, key=lambda sign: (sign.iteration or 0, sign.seconds))
    which = f"{names[last.rank]} of {len(names)} was"
    if len(names) > 1 and not hung and len({sign.iteration for sign in suspects}) == 1:
        which = f"all {len(names)} {kind} were"
    where = f"at iteration {last.iteration}" if last.iteration else "before its first iteration"
    return f"{which} last heard of {where}, {last.seconds:.0f} s in"


def last_lines(log: Path) -> str:
    """The last three lines of a log that are no steps, in one: what a crash looked like."""
    # Some launchers print rules.
    lines = [line.strip() for line in _tail(log).splitlines() if re.search(r"\w", line)]
    shown = [line for line in lines if MARK.decode() not in line and f": {QUIET} " not in line]
    return " | ".join(shown[-3:])[-LONGEST_REASON:]


def _tail(log: Path, size: int = 20_000) -> str:
    with log.open("rb") as stream:
        stream.seek(max(0, log.stat().st_size - size))
        return stream.read().decode(errors="replace")


_DECIDES_RUNS = ("workflow", "envs")
"""The folders in which an uncommitted file can change what runs."""

_BUILT = ("__pycache__/", "*.egg-info/")  # what lies there but decides nothing


def checked_out_commit(root: Path) -> tuple[str | None, bool | None]:
    """The commit that reperf's own repository has checked out, and whether the files differ.

    A repository that happens to lie around or inside reperf's folder is not reperf's own, which has
    its top there and reperf's library in its commit; None and None without it, or without git.
    """
    # The caller may be working in another repository and have told git so, as a hook does.
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("GIT_") or name.startswith("GIT_CONFIG")
    }
    # Looking must not write: neither to the index nor by starting a watcher.
    environment["GIT_OPTIONAL_LOCKS"] = "0"
    git = ["git", "-C", str(root), "-c", "core.fsmonitor=false"]
    # reperf's code runs here already, so it does not matter who owns the files.
    git += ["-c", f"safe.directory={root}"]

    look = [*git, "rev-parse", "--show-toplevel", "HEAD", "HEAD:workflow/reperf"]
    answer = answer_of(look, environment)
    if answer is None:
        return None, None
    top, commit, _ = answer.rstrip("\n").rsplit("\n", 2)
    if Path(top).resolve() != root:
        return None, None
    changed = answer_of([*git, "status", "--porcelain", "--untracked-files=no"], environment)
    # New files count even where the user's git ignores them.
    left_out = [f"--exclude={pattern}" for pattern in _BUILT]
    new = answer_of([*git, "ls-files", "--others", *left_out, "--", *_DECIDES_RUNS], environment)
    return commit, changed != "" or new != ""
