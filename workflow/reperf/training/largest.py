"""The largest batch that trains: what must be known for it, and the trials that find it.

A trial is a run of a few iterations in processes of its own, started and judged as every run is. It
has the run's own input, because loaders take memory, too, and the most devices that its suite asks
for, because collectives do: what was found then trains on all of the suite's topologies.

    results/largest/<entry>/<digest>/batch.json     a LargestBatch
    results/largest/<entry>/<digest>/trials/<n>/    the log and the record of each trial

The digest is that of the search's plan, which lies beside what it finds. Equal plans share one
search, in whichever suites they are.
"""

import shutil
import time
from collections.abc import Callable
from fractions import Fraction
from math import isqrt
from pathlib import Path
from typing import NamedTuple

from reperf.config import Run
from reperf.config.words import MOST_SAMPLES
from reperf.errors import ReperfError
from reperf.layout import BATCH_RECORD, RUN_LOG, RUN_RECORD
from reperf.logs.events import is_number
from reperf.logs.formats import mllog
from reperf.plans.run_plan import TIME_LIMITS, RunPlan, models_of, plan_run
from reperf.records.run_record import FINAL, BatchTrial, LargestBatch, RunRecord
from reperf.training.places import Place
from reperf.training.train import last_lines, try_once
from reperf.values import Status

TRIALS = "trials"
CONFIRMATIONS = 2
"""Trials of the number that was found, beyond the one that found it: close to the limit chance has
its part, in where a process's memory lies or in what kernels a library picks."""
SECOND = 4  # the second batch, in multiples: far enough from the first for a slope, and still small
MOST_PREDICTIONS = 6  # how many trials follow predictions before halves take over
GROWTH = 50  # a prediction stands on two batches that differ by a 50th of the memory, or more


class Tried(NamedTuple):
    """What became of a batch."""

    trains: bool
    peak: int | None = None
    """The most memory that a device used, in bytes; None if that is not known."""


class _NotFound(Exception):
    """The last trial says nothing about memory; the text says, in one line, what it says."""


def find(plan: RunPlan, folder: Path, place: Callable[[Run], Place], *, last: bool = True) -> None:
    """Search, and leave batch.json in the search's folder.

    Args:
        plan: the search's; its `time_limit` is that of one trial.
        last: whether this call makes no further search, so that how this one ends is the answer.
    """
    trials = _Trials(plan, folder, place)
    run, multiple = plan.run, plan.run.batch_multiple
    assert multiple is not None
    status: Status = "ok"
    reason, memory = "", None
    try:
        trials.attempt(multiple)
        memory = memory_of(trials.records[0])
        batch = largest(trials.attempt, multiple=multiple, memory=memory, most=MOST_SAMPLES)
        while batch and not trials.confirm(batch):
            batch -= multiple
        if not batch:
            batch, status = multiple, "oom"
            reason = f"not even {multiple} samples per device fit: {trials.full}"
    except _NotFound as error:
        last_one = trials.records[-1]
        batch, status, reason = last_one.run.samples_per_device, last_one.status, str(error)
    if status not in FINAL and not last:
        raise ReperfError(f"{folder}: {status}: {reason}; it is searched for again")
    first = trials.records[0]
    LargestBatch(
        status=status,
        reason=reason,
        batch_size=batch,
        multiple=multiple,
        memory_bytes=memory,
        trials=tuple(
            BatchTrial(
                batch_size=record.run.batch_size,
                status=record.status,
                reason=record.reason,
                peak_memory_bytes=record.peak_memory_bytes,
                log=f"{folder}/{TRIALS}/{number}/{RUN_LOG}",
                log_sha256=record.log_sha256,
            )
            for number, record in enumerate(trials.records, start=1)
        ),
        run=run.model_dump(mode="json", exclude={"batch_size", "suite", "repeat"}),
        plan=plan.digest,
        trainer=plan.trainer,
        image=first.environment.image and first.environment.image.digest,
        gpus=models_of(first.host.gpus) if run.device == "cuda" else (),
    ).write(folder / BATCH_RECORD)


class _Trials:
    """The trials of a search, each with a folder and a record."""

    def __init__(self, plan: RunPlan, folder: Path, place: Callable[[Run], Place]) -> None:
        self._plan, self._folder, self._place = plan, folder, place
        shutil.rmtree(folder / TRIALS, ignore_errors=True)
        self._limit = plan.aside.time_limit
        self._ends = time.monotonic() + TIME_LIMITS * self._limit
        self.full = ""  # why the last batch that did not fit did not
        self.records: list[RunRecord] = []
        self._known: dict[int, Tried] = {}

    def attempt(self, batch: int) -> Tried:
        """Try a batch size.

        A framework may crash rather than say that memory is full. A batch that does so twice lacks
        memory if a smaller one trains.
        """
        if batch not in self._known:
            self._known[batch] = self._attempt(batch)
        return self._known[batch]

    def _attempt(self, batch: int) -> Tried:
        run = self._plan.run.with_batch(batch)
        record = self._run(run)
        if record.status == "failed":
            record = self._run(run)
        smaller = any(tried.trains and size < batch for size, tried in self._known.items())
        if record.status not in ("ok", "oom") and not (record.status == "failed" and smaller):
            raise _NotFound(self._why_not_found(record))
        self.full = record.reason
        trains = record.status == "ok"
        return Tried(trains, max(record.peak_memory_bytes, default=None))

    def confirm(self, batch: int) -> bool:
        """Whether a batch size trains each time."""
        confirmed = (self._attempt(batch).trains for _ in range(CONFIRMATIONS))
        return self.attempt(batch).trains and all(confirmed)

    def _why_not_found(self, record: RunRecord) -> str:
        reason = f"the trial of {record.run.batch_size} samples per device: {record.reason}"
        if record.status == "timeout" and time.monotonic() > self._ends:
            reason += f"; the search may take {TIME_LIMITS} time limits of {self._limit:g} s"
        if record.status == "failed":
            log = self._folder / TRIALS / str(len(self.records)) / RUN_LOG
            reason += f"; its log ends with: {last_lines(log) or 'nothing'}"
        return reason

    def _run(self, run: Run) -> RunRecord:
        folder = self._folder / TRIALS / str(len(self.records) + 1)
        folder.mkdir(parents=True)
        seconds = max(1.0, min(self._limit, self._ends - time.monotonic()))
        stopped, record = try_once(
            plan_run(
                run,
                cluster=self._plan.cluster,
                remote=self._plan.aside.remote,
                hosts=self._plan.aside.hosts,
                data=self._plan.data,
                window=(1, run.iterations),
                time_limit=int(seconds),
            ),
            self._place(run),
            folder,
            attempt=len(self.records) + 1,
        )
        if stopped:
            raise ReperfError(f"{folder}/{RUN_LOG}: {record.status}: {record.reason}")
        if record.status == "ok" and (why := _memory_was_full(folder / RUN_LOG)):
            record = record.model_copy(update={"status": "oom", "reason": why})
            record.write(folder / RUN_RECORD)
        self.records.append(record)
        return record


def _memory_was_full(log: Path) -> str:
    """Why a batch that trained is too large all the same; "" if it is not, as far as its log says.

    A GPU whose memory is full in each iteration trains more slowly than with a smaller batch.
    """
    counts = mllog.read_facts(log).get("allocation_retries")
    retries = max(filter(is_number, counts if isinstance(counts, list) else ()), default=0)
    if not retries:
        return ""
    return f"it trains, but a device's memory was full {retries:g} times, and was taken anew"


def memory_of(record: RunRecord) -> int | None:
    """The bytes that each device of a run has, or that each process may take; None: not known."""
    if record.run.memory_limit is not None:
        return record.run.memory_limit
    sizes = [gpu.memory_bytes for gpu in record.host.gpus] if record.run.device == "cuda" else []
    return min(sizes, default=None)


def largest(
    attempt: Callable[[int], Tried], *, multiple: int, memory: int | None, most: int
) -> int | None:
    """The largest multiple that trains, if no batch trains that is larger than one that does not.

    Memory is a fixed part and so much for each sample. Two small batches therefore predict the
    largest one, as soon as they differ by enough; the prediction and its successor, tried, confirm
    it. Where memory is less regular, or nobody knows how much there is, the search goes on from
    there: in steps that double, then by halves. The next multiple has not trained.

    Args:
        attempt: tries a batch size, in samples; called once for each.
        memory: the bytes that a device has; None: not known.
        most: no larger batch is tried.
    """
    most -= most % multiple
    first = attempt(multiple)
    if not first.trains:
        return None
    peaks = {multiple: first.peak}
    low, high = multiple, most + multiple  # it trains, it does not
    step, predictions = multiple, 0
    while high - low > multiple:
        batch = _predicted(peaks, multiple, memory)
        if batch is None or predictions == MOST_PREDICTIONS:
            # Half way, or by their magnitudes, if these are far apart.
            half = (low + high) // 2 if high <= SECOND * low else isqrt(low * high)
            half -= half % multiple
            batch = half if high <= most else SECOND * low
        else:
            predictions += 1
            if not low < batch < high:  # it was wrong: away from what it said, in growing steps
                batch = low + step if batch <= low else high - step
                step *= 2
        batch = min(max(batch, low + multiple), high - multiple)
        tried = attempt(batch)
        if tried.trains:
            low, peaks[batch] = batch, tried.peak
        else:
            high = batch
    return low


def _predicted(peaks: dict[int, int | None], multiple: int, memory: int | None) -> int | None:
    """The largest batch, by the line through the peaks of two that train; None: no such line."""
    last = max(peaks)
    # Neighbours differ by little more than chance, and so do batches that fit into what a framework
    # takes for itself.
    first = max((batch for batch in peaks if 2 * batch <= last), default=min(peaks))
    low, high = peaks[first], peaks[last]
    if memory is None or low is None or high is None:
        return None
    growth = high - low
    if growth <= 0 or GROWTH * growth < memory:
        return None
    slope = Fraction(growth, last - first)
    more = (memory - high) // slope
    return (last + more) // multiple * multiple
