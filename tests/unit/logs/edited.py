"""Logs as they come when something went wrong: cut, torn, merged, written over.

Every edit takes a log's bytes, those of another log, and a source of chance.
"""

import random
import re
from collections.abc import Callable

Edit = Callable[[bytes, bytes, random.Random], bytes]

NOISE = (
    b"\0",
    b"\r",
    b"\x1b[2K\x1b[1A",
    b"\xff\xfe",
    b"\n",
    b"Traceback (most recent call last):\n",
    b"WARNING: NaN or Inf found in input tensor.\n",
    b" 45%|####5     | 45/100 [00:07<00:13, 2.00it/s]\r",
    b"I0904 12:01:02.123456 1400 utils.py:450] saved a checkpoint\n",
)


def _lines(log: bytes) -> list[bytes]:
    return log.splitlines(keepends=True) or [b""]


def _span(size: int, chance: random.Random) -> tuple[int, int]:
    """A stretch of up to a third of what there is."""
    start = chance.randrange(size)
    return start, min(size, start + chance.randint(1, max(1, size // 3)))


def cut_the_end(log: bytes, _other: bytes, chance: random.Random) -> bytes:
    """A run that was killed, or a copy that broke off."""
    return log[: chance.randrange(len(log))]


def cut_the_beginning(log: bytes, _other: bytes, chance: random.Random) -> bytes:
    """What `tail -c` leaves."""
    return log[chance.randrange(len(log)) :]


def lose_lines(log: bytes, _other: bytes, chance: random.Random) -> bytes:
    """Some lines are gone, here and there."""
    share = chance.random() / 2
    return b"".join(line for line in _lines(log) if chance.random() > share)


def lose_early_lines(log: bytes, _other: bytes, chance: random.Random) -> bytes:
    """Lines are gone where a log says what it is about."""
    lines = _lines(log)
    early = chance.randint(1, min(len(lines), 40))
    return b"".join(
        line for at, line in enumerate(lines) if at >= early or chance.random() > 1 / early
    )


def lose_a_stretch(log: bytes, _other: bytes, chance: random.Random) -> bytes:
    """Whole lines in a row are gone."""
    lines = _lines(log)
    start, stop = _span(len(lines), chance)
    return b"".join(lines[:start] + lines[stop:])


def repeat_lines(log: bytes, _other: bytes, chance: random.Random) -> bytes:
    """Some lines are there twice, the second time anywhere."""
    lines = _lines(log)
    for _ in range(chance.randint(1, 4)):
        lines.insert(chance.randint(0, len(lines)), chance.choice(lines))
    return b"".join(lines)


def repeat_a_stretch(log: bytes, _other: bytes, chance: random.Random) -> bytes:
    """Lines in a row are there again, as after a buffer was flushed twice."""
    lines = _lines(log)
    start, stop = _span(len(lines), chance)
    return b"".join(lines[:stop] + lines[start:])


def mix_up_lines(log: bytes, _other: bytes, chance: random.Random) -> bytes:
    """Lines in a row are in another order."""
    lines = _lines(log)
    start, stop = _span(len(lines), chance)
    some = lines[start:stop]
    chance.shuffle(some)
    return b"".join(lines[:start] + some + lines[stop:])


def split_a_line(log: bytes, _other: bytes, chance: random.Random) -> bytes:
    """Another program wrote a line feed."""
    at = chance.randrange(len(log))
    return log[:at] + b"\n" + log[at:]


def join_lines(log: bytes, _other: bytes, chance: random.Random) -> bytes:
    """A line feed is gone."""
    ends = [match.start() for match in re.finditer(rb"\n", log)] or [len(log)]
    at = chance.choice(ends)
    return log[:at] + log[at + 1 :]


def write_into_a_line(log: bytes, _other: bytes, chance: random.Random) -> bytes:
    """Another program wrote what it likes, anywhere."""
    at = chance.randrange(len(log))
    return log[:at] + chance.choice(NOISE) + log[at:]


def tear(log: bytes, _other: bytes, chance: random.Random) -> bytes:
    """Bytes in a row are gone, from the middle of a line to that of another."""
    start = chance.randrange(len(log))
    return log[:start] + log[start + chance.randint(1, 200) :]


def flip_a_bit(log: bytes, _other: bytes, chance: random.Random) -> bytes:
    """A bad disk."""
    at = chance.randrange(len(log))
    return log[:at] + bytes([log[at] ^ 1 << chance.randrange(8)]) + log[at + 1 :]


def change_a_digit(log: bytes, _other: bytes, chance: random.Random) -> bytes:
    """Somebody edited a number."""
    places = [match.start() for match in re.finditer(rb"\d", log)] or [0]
    at = chance.choice(places)
    return log[:at] + str(chance.randrange(10)).encode() + log[at + 1 :]


def append_another(log: bytes, other: bytes, chance: random.Random) -> bytes:
    """Two runs in one file, the second behind the end of the first, or of what is left of it."""
    if chance.random() < 0.5:
        log = cut_the_end(log, other, chance)
    return log + other


def append_itself(log: bytes, _other: bytes, chance: random.Random) -> bytes:
    """The same log twice, or what is left of it.

    The rest of another run would look as if it were this one's: nothing could tell them apart.
    """
    lines = _lines(log)
    left = lines[chance.randrange(len(lines)) :] if chance.random() < 0.5 else lines
    return append_another(log, b"".join(left), chance)


def interleave(log: bytes, other: bytes, chance: random.Random) -> bytes:
    """Two programs write to one file, line by line."""
    waiting = [_lines(log), _lines(other)]
    mixed = []
    while waiting[0] and waiting[1]:
        mixed.append(waiting[chance.random() < 0.5].pop(0))
    return b"".join([*mixed, *waiting[0], *waiting[1]])


def insert_a_stretch_of_another(log: bytes, other: bytes, chance: random.Random) -> bytes:
    """Some lines of another log stand among those of this one."""
    mine, others = _lines(log), _lines(other)
    start, stop = _span(len(others), chance)
    at = chance.randint(0, len(mine))
    return b"".join(mine[:at] + others[start:stop] + mine[at:])


OF_LINES: tuple[Edit, ...] = (
    cut_the_end,
    lose_lines,
    lose_early_lines,
    lose_a_stretch,
    repeat_lines,
    repeat_a_stretch,
    mix_up_lines,
    append_itself,
)
"""These write nothing that was not there: a number must be right, or absent."""
OF_TWO: tuple[Edit, ...] = (append_another, interleave, insert_a_stretch_of_another)
"""Nor do these: a number must be that of one of the two logs."""
OF_BYTES: tuple[Edit, ...] = (
    cut_the_beginning,
    split_a_line,
    join_lines,
    write_into_a_line,
    tear,
    flip_a_bit,
    change_a_digit,
)
"""These may write another number into a line; see reads_otherwise."""
