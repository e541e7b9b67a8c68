"""From a log to a throughput: one rule for every system, or a refusal that says why.

The rule: (samples between two printed iterations) / (time between them), both ends from one rank,
after the warm-up. Where the log does not carry that, there is no number.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import IO, Literal

from pydantic import ValidationError

from reperf.config import Run, Window
from reperf.errors import ReperfError
from reperf.facts import Contradiction, Facts
from reperf.files import sha256
from reperf.logs import mllog
from reperf.logs.format import Format, Record
from reperf.logs.runs import LoggedRun, training_runs
from reperf.records import RunRecord
from reperf.systems import WORKLOADS

TOLERANCE = 0.05
"""How far the printed speed may be from batch x world / step time."""


class Refused(Exception):
    """The log gives no number; the message says why."""


@dataclass(frozen=True)
class Measurement:
    """What one training run's log gives: a throughput, or the reason why there is none."""

    log: str
    format: str | None
    status: Literal["ok", "refused"]
    reason: str = ""
    throughput: float | None = None
    unit: str | None = None
    first: int | None = None
    last: int | None = None
    samples: int | float | None = None
    seconds: float | None = None
    method: str = "window"
    global_batch: int | None = None
    world_size: int | None = None


def measure_run(
    name: str, run: LoggedRun, log_format: Format, window: Window, facts: Facts
) -> Measurement:
    """Measure one training run by the window rule.

    Args:
        name: of the log, for the result.
        run: what the log holds of it.
        log_format: the log's format.
        window: iterations of warm-up and in the window.
        facts: what others say about the run; what the log says is checked against it.
    """
    first = window.first + log_format.counts_from - 1
    last = window.last + log_format.counts_from - 1
    found = {"unit": log_format.unit, "first": first, "last": last}
    try:
        facts.add("the log", run.facts)
        found |= {name: facts.get(name) for name in ("global_batch", "world_size")}
        found["unit"] = log_format.unit or unit_of(facts.get("workload"))
        records = reference_records(run)
        inside = [record for record in records if first <= record.iteration <= last]
        check_clock(inside)
        check_printed_speed(inside if len(inside) > 1 else records, facts)
        start, stop = window_ends(inside, run, first, last)
        samples = samples_between(start, stop, facts)
        seconds = stop.time - start.time
        found |= {"samples": samples, "seconds": seconds, "throughput": samples / seconds}
    except (Refused, Contradiction) as refusal:
        return Measurement(name, log_format.name, "refused", reason=str(refusal), **found)
    return Measurement(name, log_format.name, "ok", **found)


def unit_of(workload: object) -> str | None:
    """The unit of a workload's throughput, such as "images/s"."""
    return f"{WORKLOADS[workload]['unit']}/s" if workload in WORKLOADS else None


def reference_records(run: LoggedRun) -> list[Record]:
    """The records of the rank that is measured.

    Raises:
        Refused: they are not those of one rank.
    """
    if run.overflow:
        raise Refused("more lines up to the window's end than any run prints")
    records = [record for record in run.records if record.rank == run.reference]
    for before, after in pairwise(records):
        if (after.epoch, after.iteration) <= (before.epoch, before.iteration):
            raise Refused(
                f"iteration {after.iteration} comes after {before.iteration}: "
                "the lines of several ranks are mixed without labels"
            )
    return records


def check_clock(records: list[Record]) -> None:
    """Look whether time goes forward from record to record.

    Raises:
        Refused: it does not.
    """
    for before, after in pairwise(records):
        if after.time <= before.time:
            raise Refused(
                f"time steps back by {before.time - after.time:.6g} s between the iterations "
                f"{before.iteration} and {after.iteration}"
            )


def window_ends(
    inside: list[Record], run: LoggedRun, first: int, last: int
) -> tuple[Record, Record]:
    """The two records between which the clock runs.

    Raises:
        Refused: one is not there, or the run did not come to its end.
    """
    if run.newest.iteration < last:
        raise Refused(
            f"too short: it ends at iteration {run.newest.iteration}, the window at {last}"
        )
    printed = {record.iteration: record for record in inside}
    for iteration in (first, last):
        if iteration not in printed:
            raise Refused(f"iteration {iteration}, an end of the window, is not printed")
    if run.ended is False:
        raise Refused("the end of the run is not in the log: it is cut, or the run broke off")
    return printed[first], printed[last]


def samples_between(start: Record, stop: Record, facts: Facts) -> int | float:
    """The samples that all ranks trained on between two records.

    Raises:
        Refused: nobody says the global batch, or the log counts other samples than it.
    """
    batch = facts.get("global_batch")
    if batch is None:
        raise Refused("the global batch is not known: neither the log nor anything else says it")
    samples = (stop.iteration - start.iteration) * batch
    if start.samples is not None and stop.samples is not None:
        counted = stop.samples - start.samples
        if counted != samples:
            raise Refused(
                f"the log counts {counted} samples in the window, but {samples} are "
                f"{stop.iteration - start.iteration} iterations of {batch}"
            )
    return samples


def check_printed_speed(records: list[Record], facts: Facts) -> None:
    """Hold the log's own speeds against batch x world / step time.

    The printed speeds, each over the time since the record before, count the samples; divided by
    the iterations they give the global batch that the log's own program believed in.

    Raises:
        Refused: they differ by more than TOLERANCE; the message names both.
    """
    batch = facts.get("global_batch")
    steps = [
        (after.iteration - before.iteration, after.time - before.time, after.rate)
        for before, after in pairwise(records)
        if after.rate and after.time > before.time
    ]
    if batch is None or not steps:
        return
    iterations = sum(step for step, _, _ in steps)
    implied = sum(seconds * rate for _, seconds, rate in steps) / iterations
    if abs(implied - batch) > TOLERANCE * batch:
        world = facts.get("world_size")
        raise Refused(
            f"the printed speeds mean {implied:.0f} samples a step, the global batch is {batch}"
            + (f" with a world size of {world}" if world else "")
        )


def measure_stream(
    name: str, stream: IO[bytes], log_format: Format, window: Window, facts: Facts
) -> Iterator[Measurement]:
    """Measure every training run that a log holds.

    Args:
        name: of the log, for the results.
        stream: the log's bytes; read once, in pieces.
        log_format: the log's format.
        window: iterations of warm-up and in the window.
        facts: what others say about the log's runs.
    """
    last = window.last + log_format.counts_from - 1
    found = False
    for run in training_runs(stream, log_format, last):
        found = True
        yield measure_run(name, run, log_format, window, facts.copy())
    if not found:
        yield Measurement(name, log_format.name, "refused", reason="no iteration is in the log")


def measure_own_runs(folders: Iterable[Path], window: Window) -> list[dict]:
    """Measure runs that reperf made.

    Args:
        folders: each holds train.log and run.json.
        window: iterations of warm-up and in the window.

    Returns:
        The rows of measurements.csv, see reperf.tables.MEASUREMENTS.

    Raises:
        ReperfError: a run record that is none.
    """
    return [_measure_own_run(folder, window) for folder in folders]


def _measure_own_run(folder: Path, window: Window) -> dict:
    log, path = folder / "train.log", folder / "run.json"
    try:
        record = RunRecord.read(path)
    except (OSError, ValueError, ValidationError) as error:
        raise ReperfError(f"{path}: not a run record: {str(error).splitlines()[0]}") from None
    digest = sha256(log)
    if record.status != "ok":
        measured = Measurement(str(log), "mllog", "refused", reason=record.reason, method="")
        status = record.status
    elif digest != record.log_sha256:
        reason = "the log has changed since its run record was written"
        measured = Measurement(str(log), "mllog", "refused", reason=reason)
        status = "refused"
    else:
        facts = Facts().add("the run record", facts_of_run(record.run))
        with log.open("rb") as stream:
            runs = list(measure_stream(str(log), stream, mllog.FORMAT, window, facts))
        measured = runs[0] if len(runs) == 1 else _several(runs)
        status = measured.status
    return row_of_run(record.run, measured, status, digest)


def _several(runs: list[Measurement]) -> Measurement:
    reason = f"{len(runs)} runs are in one log; a run of ours writes one"
    return Measurement(runs[0].log, "mllog", "refused", reason=reason)


def facts_of_run(run: Run) -> list[tuple[str, object]]:
    """What a run's configuration says about its log."""
    return [
        ("workload", run.workload),
        ("parameters", WORKLOADS[run.workload]["parameters"]),
        ("batch_size", run.batch_size),
        ("nodes", run.nodes),
        ("devices_per_node", run.devices_per_node),
    ]


def row_of_run(run: Run, measured: Measurement, status: str, digest: str) -> dict:
    """One row of measurements.csv."""
    return {
        "suite": run.suite,
        "system": run.system,
        "workload": run.workload,
        "precision": run.precision,
        "variant": run.variant,
        "batch_size_per_device": run.batch_size,
        "topology": run.topology,
        "num_nodes": run.nodes,
        "devices_per_node": run.devices_per_node,
        "repeat": run.repeat,
        "status": status,
        "reason": measured.reason,
        "throughput": measured.throughput,
        "unit": unit_of(run.workload),
        "first": measured.first,
        "last": measured.last,
        "samples": measured.samples,
        "seconds": measured.seconds,
        "method": measured.method,
        "global_batch": run.global_batch,
        "world_size": run.world_size,
        "log": measured.log,
        "log_sha256": digest,
    }
