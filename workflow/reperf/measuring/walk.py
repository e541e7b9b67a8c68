"""The files below a folder, within the bounds of what a folder of logs can be."""

import os
from pathlib import Path

from reperf.errors import ReperfError
from reperf.text import natural

MOST_ENTRIES = 100_000
"""Files and folders; looking at so many takes a second."""
DEEPEST = 50
"""Levels of folders inside each other."""


def files_below(folder: Path) -> list[Path]:
    """The files below a folder, in the natural order of their paths; links to folders are ignored.

    Raises:
        ReperfError: it holds more files than any folder of logs, or a folder cannot be read.
    """
    files: list[Path] = []
    count = 0
    waiting = [(folder, 1)]
    while waiting:
        current, depth = waiting.pop()
        if depth > DEEPEST:
            raise ReperfError(
                f"{folder}: has folders more than {DEEPEST} deep; allowed: a folder of logs"
            )
        try:
            with os.scandir(current) as entries:
                for entry in entries:
                    count += 1
                    if count > MOST_ENTRIES:
                        raise ReperfError(
                            f"{folder}: holds more than {MOST_ENTRIES} files and folders, those of "
                            f"{current} among them; allowed: a folder of logs"
                        )
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append((current / entry.name, depth + 1))
                    elif (path := current / entry.name).is_file():
                        files.append(path)
        except OSError as error:
            raise ReperfError(
                f"{current}: cannot be read: {error.strerror}; allowed: a folder of logs"
            ) from None
    return sorted(files, key=lambda file: natural(str(file)))
