"""What a run's record adds to its row: where and when it ran, beside what, and what it took."""

from itertools import islice

from reperf.measuring.measure import Measurement
from reperf.records.cell_key import key_of
from reperf.records.run_record import Power, RunRecord

_COLUMNS = (
    *("hosts", "date", "commit", "key"),
    *("load_before", "load_during", "gpu_processes"),
    *("peak_memory", "peak_memory_is", "joules", "matrix_rate", "stage_memory"),
    "shared_cpus",
)


def recorded(record: RunRecord | None, measured: Measurement) -> dict[str, object]:
    """Columns of measurements.csv; empty where there is no record, or it does not say.

    Args:
        record: of the run, if one of ours lies beside the log.
        measured: what the log gave.
    """
    row: dict[str, object] = dict.fromkeys(_COLUMNS)
    if record is None:
        return row
    row |= {
        "hosts": " ".join(record.nodes or (record.host.hostname,)),
        "date": record.started,
        "commit": record.commit,
        "key": key_of(record),
        "shared_cpus": record.run.shared_cpus,
    }
    if load := record.load:
        row |= {"load_before": load.before, "load_during": load.during}
        row["gpu_processes"] = load.gpu_processes
    if record.peak_memory_bytes:
        row["peak_memory"] = max(record.peak_memory_bytes)
        row["peak_memory_is"] = record.peak_memory_is
        row["stage_memory"] = _stage_memory(record)
    if measured.status == "ok":
        row["joules"] = _joules(record, measured)
        row["matrix_rate"] = record.matrix_rate
    return row


def _stage_memory(record: RunRecord) -> str | None:
    """The most memory of a device of each stage, bytes; all share one stage without a pipeline."""
    parallel, taken = record.run.parallel, record.peak_memory_bytes
    stages = (parallel.pipeline if parallel else ()) or (record.run.world_size,)
    if not taken or len(taken) != sum(stages):
        return None
    ranks = iter(taken)
    return " ".join(str(max(islice(ranks, replicas))) for replicas in stages)


def _joules(record: RunRecord, measured: Measurement) -> float | None:
    """What all GPUs of a run took in the measured window; None if some of it was not metered."""
    power: Power | None = record.power
    if power is None or (power.first, power.last) != (measured.first, measured.last):
        return None
    metered = record.nodes and set(record.nodes) <= set(power.nodes)
    return power.energy_joules if metered else None
