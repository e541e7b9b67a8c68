"""How long a run usually takes: as ended runs of this folder took, else by named assumptions."""

import os
from collections.abc import Iterable
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from statistics import median
from typing import NamedTuple

from reperf.config import Report, Run
from reperf.config.words import LARGEST
from reperf.errors import ReperfError
from reperf.layout import RUN_FOLDER, RUN_RECORD
from reperf.machine import visible_gpus
from reperf.records.diagnosis import hosts_seen
from reperf.records.run_record import RunRecord
from reperf.systems import load_workloads
from reperf.systems.data_sheets import RATES, data_sheet_rate, model_of

START_SECONDS = {"cpu": 8, "cuda": 40}
"""Until the first iteration, with imports and compiling."""
ITERATION_SECONDS = 0.1
"""An iteration whose floating-point operations nobody has counted."""
SAMPLES = 256
"""A batch that a search has not found yet."""
USUAL = "H100"
"""What is assumed of GPUs that are not known."""
SHARE = 0.15
"""Of a GPU's rate that training reaches: ResNet-50 in fp16 on an H200, see docs/results.md."""
CPU_RATE = 30e9
"""Floating-point operations a second that a thread of a CPU trains with, in fp32."""


class Typical(NamedTuple):
    """How long a run usually takes."""

    seconds: float
    """From its start to its end; never more than its time limit."""
    by: str
    """What that is from, in words."""


class TypicalTimes:
    """The usual times of the runs of a report whose device is decided."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self._ended: dict[str, list[RunRecord]] = {}

    @cached_property
    def _gpu(self) -> tuple[str, str]:
        return _gpu_of(self._report)

    def of(self, run: Run, time_limit: float) -> Typical:
        """How long a run usually takes, of the seconds that it may take."""
        typical = self._as_ended_runs(run) or self._assumed(run)
        return typical._replace(seconds=min(typical.seconds, time_limit))

    def _as_ended_runs(self, run: Run) -> Typical | None:
        """As ended runs of the cell took, else the entry's, else the suite's; None: none ended."""
        if run.suite not in self._ended:
            self._ended[run.suite] = list(_ended_runs(run.suite))
        like = [
            record
            for record in self._ended[run.suite]
            if (record.run.iterations, record.run.device) == (run.iterations, run.device)
            and run.batch_size in (LARGEST, record.run.batch_size)
        ]
        for alike in (("entry", "topology"), ("entry",), ()):
            seconds = [
                record.seconds
                for record in like
                if all(getattr(record.run, name) == getattr(run, name) for name in alike)
            ]
            if seconds:
                which = " and ".join(alike) or "suite"
                return Typical(median(seconds), f"median of ended runs of the same {which}")
        return None

    def _assumed(self, run: Run) -> Typical:
        start = START_SECONDS[run.device]
        flops = load_workloads()[run.workload].flops_at(run.shape)
        if flops is None:
            seconds, how = ITERATION_SECONDS, f"{ITERATION_SECONDS:g} s an iteration"
        else:
            rate, how = self._rate(run)
            size = run.batch_size if isinstance(run.batch_size, int) else SAMPLES
            seconds = size * run.accumulation * flops / rate
        by = f"assumed: {start} s to start, then {how}"
        return Typical(start + run.iterations * seconds, by)

    def _rate(self, run: Run) -> tuple[float, str]:
        """Floating-point operations a second of a device while it trains, and what that is from."""
        if run.device == "cpu":
            how = f"the workload's FLOPs at {CPU_RATE / 1e9:g} GFLOP/s a thread"
            return CPU_RATE * run.threads, how
        model, why = self._gpu
        how = f"the workload's FLOPs at {100 * SHARE:g} % of the {model}'s rate{why}"
        of_precision = data_sheet_rate(model, run.precision) or RATES[model]["16 bits"]
        return SHARE * of_precision, how


def _ended_runs(suite: str) -> Iterable[RunRecord]:
    """The records in a suite's folder of runs that were trained to their end."""
    pattern = RUN_FOLDER.format(suite=suite, entry="*", topology="*", repeat="*")
    for path in sorted(Path().glob(f"{pattern}/{RUN_RECORD}")):
        with suppress(ReperfError):  # measuring tells what is wrong with it
            record = RunRecord.read(path)
            if record.status == "ok":
                yield record


def _gpu_of(report: Report) -> tuple[str, str]:
    """The model of the GPUs that a report trains on, and why another one is taken."""
    cluster = report.cluster
    gpus = (
        [gpu for host in hosts_seen(cluster.partition) for gpu in host.gpus]
        if cluster
        else visible_gpus(os.environ)
    )
    for gpu in gpus:
        if model := model_of(gpu.name):
            return model, ""
    return USUAL, ", as the GPUs are not known"
