"""The tries of a run: each a folder with a plan, a log and a record; one becomes the run's own."""

import os
import shutil
from contextlib import suppress
from pathlib import Path

from reperf.building.work_folder import CALL
from reperf.data.manifest import digest_of_set
from reperf.errors import ReperfError
from reperf.files import remove_partials, sha256, whole_file
from reperf.layout import PLAN, RUN_FILES, RUN_LOG, RUN_RECORD, TRIES
from reperf.plans.current import why_not_current
from reperf.plans.run_plan import RunPlan
from reperf.training.record import FINAL, LONGEST_REASON, RunRecord, Status
from reperf.training.slurm import JobEnd

_SLURMS_ENDS: dict[str, Status] = {"OUT_OF_MEMORY": "oom", "TIMEOUT": "timeout"}


def this_call() -> str:
    """What names the call of Snakemake that this process belongs to; "" if it belongs to none."""
    return os.environ.get(CALL, "")


def new_try(run: Path, plan: RunPlan) -> tuple[Path, int]:
    """Make the folder of the next try in a run's folder, and remove what a killed try left.

    Returns:
        The folder, which holds the plan, and which try of this call it is, from 1.
    """
    tries = _tries(run)
    for place in (run, *tries):
        if place.is_dir():
            remove_partials(place)
    attempt = 1 + sum(_call_of(folder) == this_call() != "" for folder in tries)
    folder = run / TRIES / str(int(tries[-1].name) + 1 if tries else 1)
    folder.mkdir(parents=True)
    with whole_file(folder / PLAN) as stream:
        stream.write(plan.text)
    return folder, attempt


def keep(folder: Path, run: Path) -> None:
    """Copy a try's log and record to the run's own."""
    for name in RUN_FILES:
        with (folder / name).open("rb") as kept, whole_file(run / name, "wb") as target:
            shutil.copyfileobj(kept, target)


def ended_try(plan: RunPlan, batch_size: int | None) -> Path | None:
    """The last try of a run, if it is one of a plan, has come to its end, and is whole.

    Args:
        plan: today's.
        batch_size: the one that was found, if the plan leaves it open.
    """
    for folder in _tries(plan.run.folder)[-1:]:
        with suppress(ReperfError, OSError):
            record = RunRecord.read(folder / RUN_RECORD)
            whole = record.status in FINAL and record.log_sha256 == sha256(folder / RUN_LOG)
            read = digest_of_set(plan.run.data)
            if whole and why_not_current(plan, batch_size, read, folder) == "":
                return folder
    return None


def keep_lost(run: Path) -> bool:
    """Make the last try of a lost run its end, so that the report can show it.

    A run is lost if this call tried it and it left no record outside its tries: Slurm cancelled its
    job, or its node broke down.

    Returns:
        Whether it was lost.
    """
    if (run / RUN_RECORD).exists():
        return False
    for last in _tries(run)[-1:]:
        if _call_of(last) == this_call() and all((last / name).exists() for name in RUN_FILES):
            keep(last, run)
            return True
    return False


def tell_of_slurm(run: Path, job: str, end: JobEnd) -> None:
    """Put how Slurm ended a job into the record of the try that ran in it.

    Its time limit makes it a `timeout`, and its memory limit `oom`, which another try would not
    change. A try that came to its own end stays as it is.
    """
    for folder in _tries(run)[-1:]:
        with suppress(ReperfError, OSError):
            record = RunRecord.read(folder / RUN_RECORD)
            if record.slurm_job != job or record.status in FINAL:
                continue
            update = {
                "status": _SLURMS_ENDS.get(end.state, record.status),
                "reason": f"{end.said}; {record.reason}"[:LONGEST_REASON],
                "log_sha256": sha256(folder / RUN_LOG),
            }
            record.model_copy(update=update).write(folder / RUN_RECORD)


def _call_of(folder: Path) -> str | None:
    with suppress(ReperfError):
        return RunRecord.read(folder / RUN_RECORD).call
    return None


def _tries(run: Path) -> list[Path]:
    """The folders of a run's tries, in their order."""
    found = [path for path in (run / TRIES).glob("*") if path.name.isdigit()]
    return sorted(found, key=lambda path: int(path.name))
