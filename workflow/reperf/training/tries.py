"""The tries of a run: each a folder with a plan, a log and a record; one becomes the run's own."""

import os
import shutil
from contextlib import suppress
from pathlib import Path

from reperf.building.work_folder import CALL
from reperf.builds import build_of, digest_now
from reperf.data.set_read import read_of_set
from reperf.errors import ReperfError
from reperf.files import remove_partials, sha256, whole_file, write_whole
from reperf.layout import PLAN, RUN_FILES, RUN_LOG, RUN_RECORD, TRIES
from reperf.plans.run_plan import RunPlan
from reperf.records.run_record import FINAL, LONGEST_REASON, RunRecord
from reperf.training.slurm import JobEnd
from reperf.values import Status

LOST = "lost"  # how the reason begins of a try whose end nobody lived to record
STOPPED = "stopped from outside"
"""How the reason begins of a try that somebody has ended, such as the user with Ctrl-C."""

_SLURMS_ENDS: dict[str, Status] = {"OUT_OF_MEMORY": "oom", "TIMEOUT": "timeout"}


def this_call() -> str:
    """What names the call of Snakemake that this process belongs to; "" if it belongs to none."""
    return os.environ.get(CALL, "")


def new_try(run: Path, plan: RunPlan) -> Path:
    """Make the folder of the next try of a run, with its plan; what a killed try left goes."""
    tries = _tries(run)
    for place in (run, *tries):
        if place.is_dir():
            remove_partials(place)
    folder = run / TRIES / str(int(tries[-1].name) + 1 if tries else 1)
    folder.mkdir(parents=True)
    write_whole(folder / PLAN, plan.text)
    return folder


def keep(folder: Path, run: Path) -> None:
    """Copy a try's log and record to the run's own."""
    for name in RUN_FILES:
        with (folder / name).open("rb") as source, whole_file(run / name, "wb") as target:
            shutil.copyfileobj(source, target)


def ended_try(plan: RunPlan, batch_size: int | None) -> Path | None:
    """A run's last try, if it is whole, has ended, and is of today's plan and batch size."""
    for folder in _tries(plan.run.folder)[-1:]:
        with suppress(ReperfError, OSError):
            record = RunRecord.read(folder / RUN_RECORD)
            whole = record.status in FINAL and record.log_sha256 == sha256(folder / RUN_LOG)
            if whole and _is_of(record, plan, batch_size):
                return folder
    return None


def ended_well(plan: RunPlan) -> int:
    """How many tries of a run have ended well under today's plan."""
    number = 0
    for folder in _tries(plan.run.folder):
        with suppress(ReperfError):
            record = RunRecord.read(folder / RUN_RECORD)
            number += record.plan == plan.digest and record.status == "ok"
    return number


def _is_of(record: RunRecord, plan: RunPlan, batch_size: int | None) -> bool:
    """Whether a record is of a plan, and of the image, the data and the batch of today."""
    image = record.environment.image
    now = {
        image and image.digest: digest_now(build_of(plan.run)),
        record.data_sha256: read_of_set(plan.run.data, plan.run.input)[0],
    }
    return (
        record.plan == plan.digest
        and (not plan.batch or record.run.batch_size == batch_size)
        and all(then == today or not then or not today for then, today in now.items())
    )


def keep_lost(run: Path) -> bool:
    """Record a lost run by its last try, so that the report can show it; whether it was lost.

    A run is lost if this call tried it and it left no record outside its tries: Slurm cancelled its
    job, or its node broke down. It is not if the user has ended the call.
    """
    if (run / RUN_RECORD).exists():
        return False
    for last in _tries(run)[-1:]:
        with suppress(ReperfError):
            record = RunRecord.read(last / RUN_RECORD)
            ends = record.slurm_job and record.reason.startswith(LOST)
            stopped = ends or record.reason.startswith(STOPPED)
            if record.call == this_call() and not stopped and (last / RUN_LOG).exists():
                keep(last, run)
                return True
    return False


def tell_of_slurm(run: Path, job: str, end: JobEnd) -> None:
    """Put how Slurm ended a job into the record of the try that ran in it.

    Its time limit makes it a `timeout`, and its memory limit `oom`: another try changes neither. A
    try that came to its own end stays as it is.
    """
    for folder in _tries(run)[-1:]:
        with suppress(ReperfError, OSError):
            record = RunRecord.read(folder / RUN_RECORD)
            if record.slurm_job != job or record.status in FINAL:
                continue
            update = {
                "status": _SLURMS_ENDS.get(end.state, record.status),
                "reason": f"{end.text}; {record.reason}"[:LONGEST_REASON],
                "log_sha256": sha256(folder / RUN_LOG),
            }
            record.model_copy(update=update).write(folder / RUN_RECORD)


def _tries(run: Path) -> list[Path]:
    folders = [path for path in (run / TRIES).glob("*") if path.name.isdigit()]
    return sorted(folders, key=lambda path: int(path.name))
