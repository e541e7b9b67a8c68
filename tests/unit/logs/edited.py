"""Logs as they come when something went wrong, or as somebody bent them.

An edit takes a log's bytes, those of another log, and a source of chance.
"""

import json
import re
from collections.abc import Callable
from copy import deepcopy
from functools import partial
from random import Random
from typing import Any

Edit = Callable[[bytes, bytes, Random], bytes]
Lines = list[bytes]
Step = dict[str, Any]  # what a line of a step log says, as JSON

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
"""What another program writes, anywhere."""
DRESSES: tuple[tuple[bytes, bytes], ...] = (
    (b"", b"\r\n"),
    (b"", b"  \n\n"),
    (b"[rank0]: ", b"\n"),
    (b"[1,0]<stdout>:", b"\n"),
    (b"train-1  | ", b"\n"),
    (b"2024-05-06T07:08:09.123456789Z stdout F ", b"\n"),
    (b"Nov 25 19:43:00 node01 python[123]: ", b"\n"),
    (b"\r\x1b[K", b"\n"),
    (b"\x1b[36m(Worker pid=1234, ip=10.0.0.1)\x1b[0m ", b"\x1b[0m\x1b[K\n"),
)
"""What a launcher, a container or a terminal writes before and behind each line."""
QUOTES = (b"# e.g. ", b'example: "', b"Validation: ", b"> ", b"the last line was ", b"step 7: ")
"""In front of a line that a help text, a summary or an error quotes."""


def _lines(log: bytes) -> Lines:
    return log.splitlines(keepends=True) or [b""]


def _of_lines(edit: Callable[[Lines, Random], Lines]) -> Edit:
    return lambda log, _other, chance: b"".join(edit(_lines(log), chance))


def _of_bytes(edit: Callable[[bytes, Random], bytes]) -> Edit:
    return lambda log, _other, chance: edit(log, chance)


def _span(lines: Lines, chance: Random) -> tuple[int, int]:
    """A stretch of up to a third of the lines."""
    start = chance.randrange(len(lines))
    return start, min(len(lines), start + chance.randint(1, max(1, len(lines) // 3)))


def _of_stretch(edit: Callable[[Lines, Random], Lines]) -> Edit:
    def whole(lines: Lines, chance: Random) -> Lines:
        start, stop = _span(lines, chance)
        return lines[:start] + edit(lines[start:stop], chance) + lines[stop:]

    return _of_lines(whole)


def _lose(lines: Lines, share: float, chance: Random) -> Lines:
    return [line for line in lines if chance.random() > share]


def _lose_early(lines: Lines, chance: Random) -> Lines:
    early = chance.randint(1, min(len(lines), 40))
    return _lose(lines[:early], 1 / early, chance) + lines[early:]


def _strew(lines: Lines, chance: Random, quotes: tuple[bytes, ...] = (b"",)) -> Lines:
    """Some lines are there again, anywhere."""
    for _ in range(chance.randint(1, 4)):
        again = chance.choice(quotes) + chance.choice(lines)
        lines.insert(chance.randint(0, len(lines)), again)
    return lines


def _dress(lines: Lines, chance: Random) -> Lines:
    before, behind = chance.choice(DRESSES)
    return [before + line.rstrip(b"\r\n") + behind for line in lines]


def _cut(log: bytes, chance: Random) -> bytes:
    return log[: chance.randrange(len(log))]


def _write(log: bytes, new: bytes, chance: Random, instead: int = 0) -> bytes:
    at = chance.randrange(len(log))
    return log[:at] + new + log[at + instead :]


def _change(log: bytes, pattern: bytes, new: bytes, chance: Random) -> bytes:
    """One of the matches is another text."""
    start, stop = chance.choice([match.span() for match in re.finditer(pattern, log)] or [(0, 0)])
    return log[:start] + new + log[stop:]


def _flip(log: bytes, chance: Random) -> bytes:
    at = chance.randrange(len(log))
    return log[:at] + bytes([log[at] ^ 1 << chance.randrange(8)]) + log[at + 1 :]


def _append(log: bytes, other: bytes, chance: Random) -> bytes:
    """The second log stands behind the end of the first, or of what is left of it.

    The digits of two numbers do not make a third one, which nobody printed.
    """
    if chance.random() < 0.5:
        log = _cut(log, chance)
        if other[:1].isdigit():
            log = log.rstrip(b"0123456789")
    return log + other


def _append_itself(log: bytes, chance: Random) -> bytes:
    # The rest of another run would look as if it were this one's: nothing could tell them apart.
    lines = _lines(log)
    left = lines[chance.randrange(len(lines)) :] if chance.random() < 0.5 else lines
    return _append(log, b"".join(left), chance)


def _interleave(log: bytes, other: bytes, chance: Random) -> bytes:
    waiting, mixed = [_lines(log), _lines(other)], []
    while all(waiting):
        mixed.append(waiting[chance.random() < 0.5].pop(0))
    return b"".join([*mixed, *waiting[0], *waiting[1]])


def _insert(log: bytes, other: bytes, chance: Random) -> bytes:
    mine, others = _lines(log), _lines(other)
    start, stop = _span(others, chance)
    at = chance.randint(0, len(mine))
    return b"".join(mine[:at] + others[start:stop] + mine[at:])


OF_LINES: dict[str, Edit] = {
    "a run that was killed, or a copy that broke off": _of_bytes(_cut),
    "lines are lost, here and there": _of_lines(
        lambda lines, chance: _lose(lines, chance.random() / 2, chance)
    ),
    "lines are lost where a log says what it is about": _of_lines(_lose_early),
    "lines in a row are lost": _of_stretch(lambda _lines, _chance: []),
    "lines are there twice": _of_lines(_strew),
    "lines in a row are there twice": _of_stretch(lambda lines, _chance: lines * 2),
    "lines are in another order": _of_stretch(
        lambda lines, chance: chance.sample(lines, len(lines))
    ),
    "the same log twice": _of_bytes(_append_itself),
    "a launcher, a container or a terminal": _of_lines(_dress),
    "lines are quoted": _of_lines(lambda lines, chance: _strew(lines, chance, QUOTES)),
}
"""These write nothing that was not there: a number must be right, or absent."""
OF_TWO: dict[str, Edit] = {
    "two runs in one file": _append,
    "two programs write to one file": _interleave,
    "lines in a row of another log": _insert,
}
"""Nor do these: a number must be that of one of the two logs."""
OF_BYTES: dict[str, Edit] = {
    "what `tail -c` leaves": _of_bytes(lambda log, chance: log[chance.randrange(len(log)) :]),
    "a line is split": _of_bytes(lambda log, chance: _write(log, b"\n", chance)),
    "lines are joined": _of_bytes(lambda log, chance: _change(log, b"\n", b"", chance)),
    "another program writes into a line": _of_bytes(
        lambda log, chance: _write(log, chance.choice(NOISE), chance)
    ),
    "bytes in a row are lost": _of_bytes(
        lambda log, chance: _write(log, b"", chance, chance.randint(1, 200))
    ),
    "a bad disk": _of_bytes(_flip),
    "somebody changes a digit": _of_bytes(
        lambda log, chance: _change(log, rb"\d", b"%d" % chance.randrange(10), chance)
    ),
}
"""These may write another number into a line: one that no other line contradicts may be wrong."""

_MARK = b":::MLLOG "
_START = _MARK + b'{"namespace": "", "time_ms": 1, "event_type": "X", "key": "run_start"}\n'


def _of_steps(edit: Callable[[list[bytes | Step], list[Step], Random], None]) -> Edit:
    """An edit of a step log: of its lines, of which the steps are read, and of these alone."""

    def whole(log: bytes, _other: bytes, chance: Random) -> bytes:
        lines: list[bytes | Step] = [
            json.loads(line.removeprefix(_MARK)) if b'"tracked_stats"' in line else line
            for line in _lines(log)
        ]
        edit(lines, [line for line in lines if isinstance(line, dict)], chance)
        return b"".join(
            _MARK + json.dumps(line).encode() + b"\n" if isinstance(line, dict) else line
            for line in lines
        )

    return whole


def _relabel(said: Step, iteration: int, times: int = 1) -> None:
    """Give a step another number, and the count of samples and the speed that go with it."""
    value = said["value"]
    value["samples"] = value["samples"] // value["iteration"] * iteration
    value["iteration"] = iteration
    if "throughput" in value:
        value["throughput"] *= times


def _move(said: Step, seconds: float) -> Step:
    """Let a step end later, by both clocks."""
    said["value"]["seconds"] += seconds
    said["time_ms"] += round(1000 * seconds)
    return said


def _relabel_one(_lines: list, steps: list[Step], chance: Random) -> None:
    said = chance.choice(steps)
    _relabel(said, chance.choice([n for n in range(201) if n != said["value"]["iteration"]]))


def _count_in_other_steps(_lines: list, steps: list[Step], chance: Random) -> None:
    times = chance.randint(2, 5)
    for said in steps:
        _relabel(said, times * said["value"]["iteration"], times)


def _scale(_lines: list, steps: list[Step], chance: Random) -> None:
    factor = chance.choice((0.01, 0.1, 0.5, 0.9, 1.1, 2.0, 10.0, 100.0))
    stamps, speeds = chance.random() < 0.5, chance.random() < 0.7
    began, wrote = steps[0]["value"]["seconds"], steps[0]["time_ms"]
    for said in steps:
        value = said["value"]
        if stamps:
            said["time_ms"] = wrote + round((said["time_ms"] - wrote) * factor)
            continue
        value["seconds"] = began + (value["seconds"] - began) * factor
        if speeds and "throughput" in value:
            value["throughput"] /= factor


def _skip(lines: list, steps: list[Step], chance: Random) -> None:
    counts = [said["value"]["iteration"] for said in steps]
    for said in chance.sample(steps, chance.randint(1, max(1, len(steps) // 2))):
        lines.remove(said)
        steps.remove(said)
    if chance.random() < 0.5:
        for said, iteration in zip(steps, counts, strict=False):
            _relabel(said, iteration)


def _invent(lines: list, steps: list[Step], chance: Random) -> None:
    for said in chance.sample(steps, chance.randint(1, 3)):
        new = deepcopy(said)
        _relabel(new, new["value"]["iteration"] + chance.randint(1, 30))
        new["value"].pop("throughput", None)
        lines.insert(lines.index(said) + 1, _move(new, 0.001))


def _print_again(lines: list, steps: list[Step], chance: Random) -> None:
    new = _move(deepcopy(chance.choice(steps)), chance.uniform(-5, 5))
    lines.insert(lines.index(chance.choice(steps)) + chance.randint(0, 1), new)


def _start_again(lines: list, steps: list[Step], chance: Random) -> None:
    again = chance.randint(1, len(steps) - 1)
    lines.insert(lines.index(steps[again]), _START)
    for said in steps[again:]:
        _move(said, chance.choice((0.0, 100.0)))


def _lose_the_loss(_lines: list, steps: list[Step], chance: Random) -> None:
    for said in chance.sample(steps, chance.randint(1, len(steps))):
        said["value"]["loss"] = chance.choice((float("nan"), float("inf"), float("-inf"), None))


OF_STEP_LOGS: dict[str, Edit] = {
    "a step has another number": _of_steps(_relabel_one),
    "all iterations are counted double, threefold, ..": _of_steps(_count_in_other_steps),
    "one of the two clocks runs faster or slower, perhaps with the printed speed": _of_steps(
        _scale
    ),
    "steps are not printed, and those behind them may count on": _of_steps(_skip),
    "steps are printed that the run has not": _of_steps(_invent),
    "a step is printed again, at another time": _of_steps(_print_again),
    "the run starts again, and what is behind may be moved in time": _of_steps(_start_again),
    "training diverged, and went on": _of_steps(_lose_the_loss),
}
"""These bend a step log that says its plan: a number must be right or absent all the same."""

_COUNTED = re.compile(
    rb"(\| epoch +\d+ step +|\[Training\]\[Iteration |\bstep:)(\d+)"
    rb"(?= \| batches|\]\[Epoch|/\d+ [^\n]*:\d+ms )"
)
"""An iteration that its line counts in two ways: by its number, and by its time and mean in ms."""


def counts_twice(log: bytes) -> bool:
    """Whether a log counts its iterations in two ways."""
    return len(_COUNTED.findall(log)) > 2


def _count_on(lines: Lines, chance: Random, copies: int) -> Lines:
    """Lines of iterations are there as many times, and those behind count on."""
    counted = {
        at: int(match[2]) for at, line in enumerate(lines) if (match := _COUNTED.search(line))
    }
    chosen = chance.sample([*counted][1:-1], chance.randint(1, len(counted) // 2))
    iteration, second, *_ = counted.values()
    between, written = second - iteration, []
    for at, line in enumerate(lines):
        for _ in range(copies if at in chosen else 1):
            written.append(_COUNTED.sub(rb"\g<1>%d" % iteration, line))
            iteration += between if at in counted else 0
    return written


OF_COUNTS: dict[str, Edit] = {
    "lines are left out, and those behind count on": _of_lines(partial(_count_on, copies=0)),
    "lines are there twice, and those behind count on": _of_lines(partial(_count_on, copies=2)),
}
"""These count anew in a log that counts twice: a number must be right or absent all the same."""
EDITS = OF_LINES | OF_TWO | OF_BYTES | OF_STEP_LOGS | OF_COUNTS
"""What an edit does -> the edit."""
