"""The tries of a run: each a folder with a log and a record; one try becomes the run's own."""

import json
import shutil
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from reperf.config import Run
from reperf.errors import ReperfError
from reperf.files import remove_partials, whole_file
from reperf.layout import RUN_FILES, RUN_RECORD
from reperf.training.record import FINAL, LARGEST_RECORD, RunRecord

Cluster = Mapping[str, Any] | None
"""The variables of the cluster on which runs start; None on this machine."""


def new_try(run: Path) -> Path:
    """Make the folder of the next try in a run's folder, and remove what a killed try left."""
    for place in (run, *(run / "tries").glob("*")):
        if place.is_dir():
            remove_partials(place)
    folder = run / "tries" / str(_last(run) + 1)
    folder.mkdir(parents=True)
    return folder


def keep(folder: Path, run: Path) -> None:
    """Copy a try's log and record to the run's own."""
    for name in RUN_FILES:
        with (folder / name).open("rb") as kept, whole_file(run / name, "wb") as target:
            shutil.copyfileobj(kept, target)


def keep_lost(run: Path) -> bool:
    """Make the last try of a lost run its end, so that the report can show it.

    A run is lost if the workflow saw it fail and it left no record outside its tries: Slurm
    cancelled its job, or its node broke down.

    Returns:
        Whether a try left a record.
    """
    last = run / "tries" / str(_last(run))
    found = all((last / name).exists() for name in RUN_FILES)
    if found:
        keep(last, run)
    return found


def take_up(run: Run, trainer: str, cluster: Cluster) -> None:
    """Make a run's last try its own, if the try came to its end but the workflow did not.

    A workflow that is told to end removes what a run has just written.

    Args:
        run: as planned.
        trainer: SHA-256 of all that decides how its system trains.
        cluster: where it would start.
    """
    if all((run.folder / name).exists() for name in RUN_FILES):
        return
    last = run.folder / "tries" / str(_last(run.folder))
    with suppress(ReperfError):
        record = RunRecord.read(last / RUN_RECORD)
        made = record.run, record.trainer, record.cluster
        if record.status in FINAL and made == (run, trainer, cluster):
            keep(last, run.folder)


def not_as_planned(run: Run, trainer: str, cluster: Cluster, image: str | None = None) -> str:
    """Why what lies in a run's folder is not the run that is planned; "" if it is.

    This is called for every run before anything starts, so it reads no more than it needs. Invalid
    and edited records are left to measuring, which refuses them.

    Args:
        run: as planned.
        trainer: SHA-256 of all that decides how its system trains.
        cluster: where it would start.
        image: the digest of the image that it would train in, if that is known.
    """
    record = run.record
    try:
        if record.stat().st_size > LARGEST_RECORD:
            return ""
        content = json.loads(record.read_bytes())
        recorded, trained_by = content["run"], content.get("trainer") or trainer
        started_on = content.get("cluster") if content["record_version"] > 1 else cluster
        if started_on and started_on.get("container", ...) is None:
            del started_on["container"]  # where earlier versions said that there was none
        trained_in = content["environment"].get("image")
        if recorded != run.model_dump(mode="json") and (
            differences := Run.model_validate(recorded).differences(run)
        ):
            return f"{record}: {differences}"
    except (OSError, ValueError, LookupError, AttributeError, TypeError, RecursionError):
        return ""
    if trained_by != trainer:
        return f"{record}: the trainer has changed since"
    if image and trained_in and trained_in["digest"] != image:
        return f"{record}: the image has changed since"
    return "" if started_on == cluster else f"{record}: the cluster's settings have changed since"


def _last(run: Path) -> int:
    tries = (run / "tries").glob("*")
    return max((int(path.name) for path in tries if path.name.isdigit()), default=0)
