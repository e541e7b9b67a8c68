"""The step log of reperf's own trainers: MLPerf's `:::MLLOG {...}` lines.

    :::MLLOG {"key": "tracked_stats", "value": {"iteration": 20, "seconds": 12.3, "samples": 5120, "throughput": 410.2, "waited": 0.1, ..}, ..}

Besides samples a line may hold further counts, such as "tokens". "waited" are the seconds for which
rank 0 has waited for batches so far; a line lacks it where no one has measured that. The other ranks
print "rank 3: iteration 20, loss 5.5, waited 0.100000 s" then: of a window, the rank that waited
longest counts. At the end, "rank_seconds_alone" holds what each rank takes for the gradients of a
batch by itself. The clock of
"seconds" cannot jump; "time_ms", when the line was written, is a second one. The log ends with
`run_stop`. Of ranks that keep their own time (`own_time`) each writes all of these lines for itself,
and `metadata` names its rank.

Source: workflow/trainers/contract/steplog.py; github.com/mlcommons/logging.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from math import inf
from pathlib import Path
from typing import Any

from reperf.logs.clock import MONOTONIC
from reperf.logs.configured import facts_of_flags, facts_of_framework
from reperf.logs.events import (
    EVENT_LINE,
    MARK,
    events_in,
    facts_of,
    is_number,
    is_whole,
    read_event,
    run_events,
    stamp_of,
)
from reperf.logs.facts import AMP_IN_BF16, Fact
from reperf.logs.format import Format, Prints, Record
from reperf.logs.log_file import LogFile, opened
from reperf.logs.scan import after_labels
from reperf.values import Status

_EXCUSES: dict[bytes, Status] = {b"REFUSED": "failed", b"OOM": "oom"}
_EXCUSE = re.compile(rb":::(REFUSED|OOM) (rank \d{1,9}(?: \(stage \d{1,9}\))?: [^\r\n]{0,10000})")
_LONGEST_LABELS = 200  # bytes
_WORDS = {"float32": "fp32", "tf32": "tf32", "float16": "fp16", "bfloat16": "bf16", "float8": "fp8"}
"""What the configuration calls the data type in which a trainer computes."""
_NO_COUNTS = {"iteration", "seconds", "loss", "throughput"}
"""All other numbers of a step are counts."""
_NO_LOSS = "the loss at iteration {iteration} is {loss}, which no run of ours prints"
_LONGEST_LOSS = 40  # characters
MOST_RANKS = 10**9
_KEYS = (
    "allocation_retries",
    "configuration",
    "parameters",
    "peak_memory_bytes",
    "peak_memory_is",
    "precision",
    "rank_seconds_alone",
    "rank_seconds_waited",
    "run_stop",
    "settings",
)
"""The facts by which a run is judged; a log may hold any number of others."""


def _read(match: re.Match[bytes], rank: tuple[int, ...]) -> Record | None:
    event = read_event(match)
    value = event.get("value")
    if event.get("key") != "tracked_stats" or not isinstance(value, dict):
        return None
    iteration, seconds = value.get("iteration"), value.get("seconds")
    if not is_whole(iteration) or not is_number(seconds):
        return None
    rate, loss = value.get("throughput"), value.get("loss", 0.0)
    fault = ""
    if type(loss) not in (int, float) or not abs(loss) < inf:  # so for NaN, too
        fault = _NO_LOSS.format(iteration=iteration, loss=str(loss)[:_LONGEST_LOSS])
    return Record(
        iteration=iteration,
        rank=rank,
        time=seconds,
        rate=rate if is_number(rate) else None,
        text=match[0],
        stamp=stamp_of(event),
        fault=fault,
        counts=tuple(
            (name, count)
            for name, count in value.items()
            if name not in _NO_COUNTS and is_number(count)
        ),
    )


_STARTED = re.compile(rb"rank \d{1,6}(?: \(stage \d{1,6}\))?: started on (\S{1,255}), process \d")
_counted = facts_of(
    {
        "submission_benchmark": "workload",
        "global_batch_size": "global_batch",
        "world_size": "world_size",
        "parameters": "parameters",
        "loss_without_dropout": "start_loss",
    }
)


def _facts(head: bytes) -> Iterable[Fact]:
    """What a log says about its run before it trains."""
    yield from _counted(head)
    begun = [event.seconds for event in run_events(head) if event.begins and event.seconds]
    yield "run_start", begun[-1] if begun else None  # runs that broke off may have begun before
    if hosts := {host.decode(errors="replace") for host in _STARTED.findall(head)}:
        yield "hosts", tuple(sorted(hosts))
    precisions, computed, named, configured = [], [], False, False
    for event in events_in(head):
        key, value = event.get("key"), event.get("value")
        if key == "configuration" and isinstance(value, dict):
            configured = True
            for fact in facts_of_flags(value):
                if fact[0] == "precision":
                    precisions.append(fact[1])
                else:
                    yield fact
        elif key == "framework" and isinstance(value, str):
            named = True
            yield from facts_of_framework(value)
        elif key == "precision" and isinstance(value, dict) and "compute" in value:
            computed.append(_WORDS.get(str(value["compute"]), str(value["compute"])))
    if set(computed) == {"bf16"} and set(precisions) <= {"amp"}:
        precisions, computed = [], [AMP_IN_BF16]
    yield from (("precision", precision) for precision in precisions + computed)
    yield "unconfigured", (named and not configured) or None


FORMAT = Format(
    name="mllog",
    system="",
    marker=b'"tracked_stats"',
    pattern=EVENT_LINE,
    clock=MONOTONIC,
    read=_read,
    facts=_facts,
    unit=None,
    prints=Prints.RUN_START | Prints.RUN_STOP,
)


def read_facts(log: Path) -> dict[str, Any]:
    """What a log of ours says about its whole run: key -> its last value, of any type."""
    events = (event for event in map(read_event, _events(log)) if rank_of(event) == 0)
    found = ((event.get("key"), event.get("value")) for event in events)
    return {key: value for key, value in found if isinstance(key, str) and key in _KEYS}


def read_ends(log: Path, iterations: Collection[int]) -> dict[int, float]:
    """When some printed iterations ended: iteration -> seconds, by the trainer's own clock."""
    steps = (_read(match, ()) for match in _events(log) if rank_of(read_event(match)) == 0)
    return {
        step.iteration: step.time
        for step in steps
        if step and step.time is not None and step.iteration in iterations
    }


def read_losses(log: Path) -> tuple[dict[int, float], tuple[str, ...]]:
    """What a run computed: iteration -> loss, and the digest of each rank's weights at the end.

    The loss without dropout, before any training, is that of iteration 0.
    """
    losses: dict[int, float] = {}
    digests: tuple[str, ...] = ()
    for event in map(read_event, _events(log)):
        key, value = event.get("key"), event.get("value")
        if key == "loss_without_dropout" and is_number(value):
            losses[0] = value
        elif key == "tracked_stats" and isinstance(value, dict) and is_number(value.get("loss")):
            losses[value["iteration"]] = value["loss"]
        elif key == "weight_digests" and isinstance(value, list):
            digests = tuple(map(str, value))
    return losses, digests


_WAITED = re.compile(
    rb"rank (\d{1,9})(?: \(stage \d{1,9}\))?: iteration (\d{1,15})(?:, loss [^\s,]{1,40})?"
    rb"(?:, waited (\d{1,15}\.\d{6}) s)?\r?$",
    re.MULTILINE,
)
"""What ranks but the first print; without their wait, it is none so far, or nobody knows."""


def waits_of_ranks(log: LogFile, ends: tuple[int, int]) -> list[float]:
    """How many seconds each rank but the first waited for batches between two iterations."""
    waited: dict[tuple[bytes, int], float] = {}
    for _, chunk in log.chunks():
        for match in _WAITED.finditer(chunk):
            waited.setdefault((match[1], int(match[2])), float(match[3] or 0))
    ranks = {rank for rank, _ in waited}
    return [
        waited[rank, ends[1]] - waited[rank, ends[0]]
        for rank in ranks
        if all((rank, end) in waited for end in ends)
    ]


def rank_of(event: Mapping[str, Any]) -> int:
    """The rank that logged an event; 0 for synchronous runs, which log on rank 0 only."""
    metadata = event.get("metadata")
    rank = metadata.get("rank") if isinstance(metadata, dict) else None
    return rank if type(rank) is int and 0 <= rank <= MOST_RANKS else 0


def _events(log: Path) -> Iterator[re.Match[bytes]]:
    with log.open("rb") as stream:
        for _, chunk in opened(stream).chunks():
            for text in chunk.splitlines(keepends=True):
                # One search per line: a long one may hold thousands of beginnings.
                if match := FORMAT.line.search(text, max(text.rfind(MARK), 0)):
                    yield match


def read_excuse(log: Path) -> tuple[Status, str] | None:
    """How and why a trainer of ours gave up, if a line of its own says so."""
    with log.open("rb") as stream:
        chunks = opened(stream).chunks()
        return next((excuse for _, chunk in chunks for excuse in _excuses(chunk)), None)


def _excuses(text: bytes) -> Iterator[tuple[Status, str]]:
    for match in _EXCUSE.finditer(text):
        before = text[max(0, match.start() - _LONGEST_LABELS) : match.start()]
        labels = re.split(rb"[\r\n]", before)[-1]
        if after_labels(labels) == len(labels) < _LONGEST_LABELS:
            yield _EXCUSES[match[1]], match[2].decode(errors="replace").strip()
