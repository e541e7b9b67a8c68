"""A folder in which an archive's suite is measured again, by its configuration and its locks."""

import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256 as sha256_of
from pathlib import Path, PurePath
from typing import Any
from zipfile import ZipFile

from reperf.archive.container import unpack, verified
from reperf.archive.rebuild import config_in
from reperf.config import load_report
from reperf.errors import ReperfError
from reperf.files import sha256, write_whole
from reperf.layout import ROOT, RUN_FOLDER, RUN_RECORD
from reperf.member_names import CONFIG
from reperf.records.run_record import RunRecord

CONFIGURATION = "reproduce.json"
"""What is measured again, in the folder: the archive's configuration, with the archive's hash."""
_COPIED = (
    *("Snakefile", "config.yaml", "workflow", "envs", "data/published"),
    *("profiles", "hosts", "slurm"),
)
"""What a folder needs to run the workflow."""
_BUILDS = ".envs"
_LOCKS, _CODE = "envs/", "workflow/"
_RECORDS = f"{RUN_FOLDER}/{RUN_RECORD}".format(suite="*", entry="*", topology="*", repeat="*")


@dataclass(frozen=True)
class Prepared:
    """A folder that is ready to measure an archive's suite again."""

    archive_sha256: str
    locks: tuple[str, ...]
    """The archive's locks that differ from this checkout's; the folder has the archive's."""
    code: tuple[str, ...]  # likewise the trainers and descriptions
    with_its_code: bool
    """Whether the folder has the archive's; False: this checkout's."""


def prepare(path: Path, folder: Path, *, its_code: bool = False) -> Prepared:
    """Make a working folder for an archive's suite, or go on in one that was made for it.

    Args:
        folder: is created; or has what an earlier call prepared from the same archive.
        its_code: whether to run the archive's trainers instead of this checkout's.

    Raises:
        ReperfError: the archive is damaged, not of reperf 1, or has no run of reperf's; the folder
            is not empty; or reperf was installed as a wheel, which cannot train.
    """
    if not (ROOT / "Snakefile").is_file():
        raise ReperfError("reproduce trains, which a wheel cannot; allowed: in a clone of reperf")
    with verified(path) as archive:
        digest = sha256(path)
        config = config_in(archive, path)
        (suite,) = load_report(config, f"{path}: {CONFIG}").suites
        if not suite.entries:
            raise ReperfError(
                f"{path}: {suite.name} has only external logs, which cannot be run again; "
                "allowed: an archive of runs of reperf's own"
            )
        _check_folder(folder, digest)
        names = [name for name in archive.namelist() if name.startswith((_LOCKS, _CODE))]
        ours = {name: (ROOT / name).read_bytes() for name in names if (ROOT / name).is_file()}
        differing = [name for name in names if archive.read(name) != ours.get(name)]
        if not (folder / CONFIGURATION).exists():
            for name in _COPIED:
                _copy(ROOT / name, folder / name)
            if (ROOT / _BUILDS).is_dir():  # a build's name holds its recipe's digest
                (folder / _BUILDS).symlink_to((ROOT / _BUILDS).absolute())
            for name in differing:
                if its_code or name.startswith(_LOCKS):
                    (folder / name).unlink(missing_ok=True)
                    unpack(archive, name, folder)
            locks_of_entries = dict(_unpack_locks_of_entries(archive, folder))
            again = _again(config, digest, locks_of_entries)
            write_whole(folder / CONFIGURATION, json.dumps(again, indent=2) + "\n")
        locks, code = (
            tuple(name for name in differing if name.startswith(begin)) for begin in (_LOCKS, _CODE)
        )
        there = all((folder / name).read_bytes() == archive.read(name) for name in code)
    return Prepared(digest, locks, code, with_its_code=there)


def _check_folder(folder: Path, digest: str) -> None:
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return
    try:
        begun = json.loads((folder / CONFIGURATION).read_bytes())["reproduces"]
    except (OSError, ValueError, KeyError, TypeError):
        begun = None
    if begun != digest:
        what = f"reproduces archive {begun[:12]}, not {digest[:12]}" if begun else "exists already"
        raise ReperfError(f"{folder}: {what}; allowed: a new or empty folder")


def _copy(source: Path, target: Path) -> None:
    if source.is_dir():
        shutil.copytree(
            source, target, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__")
        )
    else:
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source, target)


def _unpack_locks_of_entries(archive: ZipFile, folder: Path) -> Iterator[tuple[str, str]]:
    """Put the locks that entries name beside the others.

    Yields:
        A lock as the archive's configuration names it, and its path below the folder.
    """
    names = archive.namelist()
    # Earlier tries may have trained with another lock. Their records lie in deeper folders.
    written = [name for name in names if PurePath(name).match(_RECORDS)]
    records = [RunRecord.parse(archive.read(name), name) for name in written]
    named = {record.run.lock_file: record.environment.lock_sha256 for record in records}
    for lock, digest in named.items():
        if not lock or not digest:
            continue
        file = PurePath(lock).name
        for content in (archive.read(name) for name in names if name.endswith(file)):
            if sha256_of(content).hexdigest() == digest:
                (folder / f"{_LOCKS}{digest[:8]}-{file}").write_bytes(content)
                yield lock, f"{_LOCKS}{digest[:8]}-{file}"
                break


def _again(config: dict[str, object], digest: str, locks: Mapping[str, str]) -> dict[str, object]:
    """The configuration to run: without what the machine decides, and without logs of others.

    Args:
        locks: of entries: the path in the configuration -> the path below the new folder.
    """
    machine = ("hardware", "other_hardware")
    again = {key: value for key, value in config.items() if key not in machine}
    suites: Sequence[dict[str, Any]] = config["suites"]  # type: ignore[assignment]
    trained = [{key: value for key, value in suite.items() if key != "from"} for suite in suites]
    for suite in trained:
        for entry in suite["systems"]:
            if lock := entry.get("lock"):
                entry["lock"] = locks.get(lock, lock)
    return again | {"suites": trained, "reproduces": digest}
