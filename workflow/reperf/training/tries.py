"""The tries of a run: a folder with a log and a record each, one of which becomes the run's own."""

import shutil
from pathlib import Path

from reperf.files import whole_file

_FILES = ("train.log", "run.json")


def new_try(run: Path) -> Path:
    """Make the folder of the next try in a run's folder."""
    folder = run / "tries" / str(_last(run) + 1)
    folder.mkdir(parents=True)
    return folder


def keep(folder: Path, run: Path) -> None:
    """Make a try's log and record those of the run."""
    for name in _FILES:
        with (folder / name).open("rb") as source, whole_file(run / name, "wb") as target:
            shutil.copyfileobj(source, target)


def keep_lost(run: Path) -> bool:
    """Make the last try of a lost run its end, so that the report can show it.

    Lost means that the workflow saw the run fail, and the run left no record outside its tries:
    Slurm cancelled its job, or its node broke down.

    Returns:
        Whether a try had left a record.
    """
    last = run / "tries" / str(_last(run))
    found = all((last / name).exists() for name in _FILES)
    if found:
        keep(last, run)
    return found


def _last(run: Path) -> int:
    tries = (run / "tries").glob("*")
    return max((int(path.name) for path in tries if path.name.isdigit()), default=0)
