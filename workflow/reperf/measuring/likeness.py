"""Which files are logs, by their names and by what is in them.

People name logs in many ways: `train.log`, `result_0.txt`, `workerlog.0`, `gpu8_bs96`. A name says
that a file is a log, or something else; where it leaves that open, the content decides.
"""

import re
from io import BytesIO
from itertools import islice
from pathlib import PurePath
from typing import Literal

from reperf.logs.checks import Refused
from reperf.logs.log_file import LogFile
from reperf.logs.recognise import NOT_READ, recognise

SURE = (".log",)
"""A file with this ending is a log."""
LIKELY = (".txt", ".out", ".err")
"""A file with one of these is a log if its content is a log's."""
SUFFIXES = (*SURE, *LIKELY)
_COMPRESSED = (".gz", ".bz2", ".xz", ".zst")

Name = Literal["sure", "likely", "open", "other"]
"""What a name says: a log; perhaps one; nothing, for it has no ending; something else."""

_ENDING = re.compile(r"\.[A-Za-z]\w{0,15}")  # that of workerlog.0 is a number, and says nothing
_HEAD = 1 << 22
"""Bytes at a file's beginning by which it is judged."""
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


def by_name(path: PurePath) -> Name:
    """What the name of a file says about it."""
    ending = path.suffix.lower()
    if ending in _COMPRESSED:
        name = by_name(path.with_suffix(""))
        return name if name in ("sure", "likely") else "other"
    if ending in SURE:
        return "sure"
    if ending in LIKELY:
        return "likely"
    hidden = any(part.startswith(".") and part.strip(".") for part in path.parts)
    return "other" if hidden or _ENDING.fullmatch(ending) else "open"


def is_log(head: bytes) -> bool:
    """Whether a file is a log: it has a line of a known format, or reads like one of another.

    Args:
        head: its beginning, as `beginning` gives it.
    """
    if b"\0" in head:  # a program, a picture
        return False
    try:
        recognise(LogFile(BytesIO(head)))
    except Refused as refusal:
        return refusal.code not in NOT_READ or reads_like_log(head)
    return True


def reads_like_log(head: bytes) -> bool:
    """Whether a file begins as if training had written it, in whatever format."""
    if _MLPERF.search(head) and b"\0" not in head:
        return True
    lines = set(head.replace(b"\r", b"\n").split(b"\n"))
    signs = (line for line in lines if _SIGN.search(line))
    return b"\0" not in head and len(list(islice(signs, _FEWEST))) == _FEWEST


def beginning(log: LogFile) -> bytes:
    """As much of a log as it is judged by."""
    return log.part(0, min(_HEAD, log.size))
