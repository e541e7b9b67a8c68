"""Which files are logs, by their names and by what is in them.

People name logs in many ways: `train.log`, `result_0.txt`, `workerlog.0`, `gpu8_bs96`. A name says
that a file is a log, or something else; where it leaves that open, the content decides.
"""

import os
import re
from io import BytesIO
from itertools import islice
from pathlib import Path, PurePath
from typing import Literal

from reperf.errors import ReperfError
from reperf.logs.checks import Refused
from reperf.logs.log_file import LogFile
from reperf.logs.recognise import NOT_READ, recognise
from reperf.text import natural_sort_key

MOST_ENTRIES = 100_000
"""Files and folders below a folder of logs; looking at so many takes a second."""

SURE = (".log",)  # a file with this ending is a log
LIKELY = (".txt", ".out", ".err")  # a file with one of these is a log if its content is a log's
SUFFIXES = (*SURE, *LIKELY)
_COMPRESSED = (".gz", ".bz2", ".xz", ".zst")

FileClass = Literal["sure", "likely", "open", "other"]
"""What a name says: a log; perhaps one; nothing, for it has no ending; something else."""

_ENDING = re.compile(r"\.[A-Za-z]\w{0,15}")  # that of workerlog.0 is a number, and says nothing
_HEAD = 1 << 22  # bytes at a file's beginning by which it is judged
_FEWEST = 3
# What a line of a training log says, whoever wrote it: which step this is, its loss, its speed.
_SIGN = re.compile(
    rb"""(?xi: (?<![a-z]) (?: iter(?:ation)?s? | steps? | epochs? | batch(?:es)? | loss )
          [^\w\n]{0,4} \d
        | (?: its? | samples | examples | images | imgs? | tokens | words | sequences | steps )
          (?: /s | \ /\ s | \ per\ s ) )"""
)

_MLPERF = re.compile(rb":::ML(?:LOG|L|Pv\d[\d.]{0,9}) ")
"""What nothing but a log of MLPerf's holds, in all its versions: one line is enough."""


def class_of(path: PurePath) -> FileClass:
    """What the name of a file says about it.

    Examples:
        >>> [class_of(PurePath(name)) for name in ("a.log", "a.out.gz", "workerlog.0", "a.png")]
        ['sure', 'likely', 'open', 'other']
    """
    ending = path.suffix.lower()
    if ending in _COMPRESSED:
        unpacked = class_of(path.with_suffix(""))
        return unpacked if unpacked in ("sure", "likely") else "other"
    if ending in SURE:
        return "sure"
    if ending in LIKELY:
        return "likely"
    hidden = any(part.startswith(".") and part.strip(".") for part in path.parts)
    return "other" if hidden or _ENDING.fullmatch(ending) else "open"


def is_log(head: bytes) -> bool:
    """Whether a file that begins so is a log: of a known format, or it reads like one of another.

    Examples:
        >>> is_log(b"Everyone is permitted to copy and distribute.")
        False
    """
    if b"\0" in head:  # a program, a picture
        return False
    try:
        recognise(LogFile(BytesIO(head)))
    except Refused as refusal:
        return refusal.code not in NOT_READ or reads_like_log(head)
    return True


def reads_like_log(head: bytes) -> bool:
    r"""Whether a file begins as if training had written it, in whatever format.

    Examples:
        >>> reads_like_log(b"step 1, loss 9.0\nstep 2, loss 8.5\nstep 3, loss 8.2\n")
        True
    """
    if b"\0" in head:
        return False
    lines = set(head.replace(b"\r", b"\n").split(b"\n"))
    signs = (line for line in lines if _SIGN.search(line))
    return bool(_MLPERF.search(head)) or len(list(islice(signs, _FEWEST))) == _FEWEST


def beginning(log: LogFile) -> bytes:
    """As much of a log as it is judged by."""
    return log.part(0, min(_HEAD, log.size))


def files_below(folder: Path) -> list[Path]:
    """The files below a folder, in the natural order of their paths; links to folders are ignored.

    A folder that holds more files than any folder of logs, or cannot be read, is refused.
    """

    def unreadable(error: OSError) -> None:
        why = f"{error.filename}: cannot be read: {error.strerror}; allowed: a folder of logs"
        raise ReperfError(why)

    files: list[Path] = []
    count = 0
    for current, folders, names in os.walk(folder, onerror=unreadable):
        count += len(folders) + len(names)
        if count > MOST_ENTRIES:
            raise ReperfError(
                f"{folder}: holds more than {MOST_ENTRIES} files and folders, those of {current} "
                "among them; allowed: a folder of logs"
            )
        paths = (os.path.join(current, name) for name in names)  # noqa: PTH118 - see below
        files += [Path(path) for path in paths if os.path.isfile(path)]  # noqa: PTH113 - never raises
    return sorted(files, key=lambda file: natural_sort_key(str(file)))
