"""Logs as they come when something went wrong, or as somebody bent them.

Every edit takes a log's bytes, those of another log, and a source of chance.
"""

import json
import random
import re
from collections.abc import Callable
from copy import deepcopy
from functools import wraps
from typing import Any

Edit = Callable[[bytes, bytes, random.Random], bytes]
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
"""What stands before and behind each line once somebody's tool has passed it on."""
QUOTES = (b"# e.g. ", b'example: "', b"Validation: ", b"> ", b"the last line was ", b"step 7: ")


def _lines(log: bytes) -> list[bytes]:
    return log.splitlines(keepends=True) or [b""]


def _span(size: int, chance: random.Random) -> tuple[int, int]:
    """A stretch of up to a third of what there is."""
    start = chance.randrange(size)
    return start, min(size, start + chance.randint(1, max(1, size // 3)))


def _of_lines(edit: Callable[[list[bytes], random.Random], list[bytes]]) -> Edit:
    """An edit that looks at the lines of one log alone."""

    @wraps(edit)
    def whole(log: bytes, _other: bytes, chance: random.Random) -> bytes:
        return b"".join(edit(_lines(log), chance))

    return whole


def cut_the_end(log: bytes, _other: bytes, chance: random.Random) -> bytes:
    """A run that was killed, or a copy that broke off."""
    return log[: chance.randrange(len(log))]


def cut_the_beginning(log: bytes, _other: bytes, chance: random.Random) -> bytes:
    """What `tail -c` leaves."""
    return log[chance.randrange(len(log)) :]


@_of_lines
def lose_lines(lines: list[bytes], chance: random.Random) -> list[bytes]:
    """Some lines are gone, here and there."""
    share = chance.random() / 2
    return [line for line in lines if chance.random() > share]


@_of_lines
def lose_early_lines(lines: list[bytes], chance: random.Random) -> list[bytes]:
    """Lines are gone where a log says what it is about."""
    early = chance.randint(1, min(len(lines), 40))
    return [line for line in lines[:early] if chance.random() > 1 / early] + lines[early:]


@_of_lines
def lose_a_stretch(lines: list[bytes], chance: random.Random) -> list[bytes]:
    """Whole lines in a row are gone."""
    start, stop = _span(len(lines), chance)
    return lines[:start] + lines[stop:]


@_of_lines
def repeat_lines(lines: list[bytes], chance: random.Random) -> list[bytes]:
    """Some lines are there twice, the second time anywhere."""
    for _ in range(chance.randint(1, 4)):
        lines.insert(chance.randint(0, len(lines)), chance.choice(lines))
    return lines


@_of_lines
def repeat_a_stretch(lines: list[bytes], chance: random.Random) -> list[bytes]:
    """Lines in a row are there again, as after a buffer was flushed twice."""
    start, stop = _span(len(lines), chance)
    return lines[:stop] + lines[start:]


@_of_lines
def dress_lines(lines: list[bytes], chance: random.Random) -> list[bytes]:
    """All lines went through a launcher, a container, a terminal or a system of another kind."""
    before, behind = chance.choice(DRESSES)
    return [before + line.rstrip(b"\r\n") + behind for line in lines]


@_of_lines
def quote_lines(lines: list[bytes], chance: random.Random) -> list[bytes]:
    """Lines are quoted in others, anywhere: a help text, a summary, an error."""
    for _ in range(chance.randint(1, 4)):
        quoted = chance.choice(QUOTES) + chance.choice(lines)
        lines.insert(chance.randint(0, len(lines)), quoted)
    return lines


@_of_lines
def mix_up_lines(lines: list[bytes], chance: random.Random) -> list[bytes]:
    """Lines in a row are in another order."""
    start, stop = _span(len(lines), chance)
    return lines[:start] + chance.sample(lines[start:stop], stop - start) + lines[stop:]


def split_a_line(log: bytes, _other: bytes, chance: random.Random) -> bytes:
    """Another program wrote a line feed."""
    at = chance.randrange(len(log))
    return log[:at] + b"\n" + log[at:]


def join_lines(log: bytes, _other: bytes, chance: random.Random) -> bytes:
    """A line feed is gone."""
    at = chance.choice([match.start() for match in re.finditer(rb"\n", log)] or [len(log)])
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
    at = chance.choice([match.start() for match in re.finditer(rb"\d", log)] or [0])
    return log[:at] + str(chance.randrange(10)).encode() + log[at + 1 :]


def append_another(log: bytes, other: bytes, chance: random.Random) -> bytes:
    """Two runs in one file, the second behind the end of the first, or of what is left of it.

    The digits of two numbers do not make a third one, which nobody printed.
    """
    if chance.random() < 0.5:
        log = cut_the_end(log, other, chance)
        if other[:1].isdigit():
            log = log.rstrip(b"0123456789")
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


_MARK = b":::MLLOG "
_START = _MARK + (
    b'{"namespace": "", "time_ms": 1, "event_type": "INTERVAL_START", "key": "run_start"}\n'
)


def _of_steps(edit: Callable[[list[bytes | Step], list[Step], random.Random], None]) -> Edit:
    """An edit of a step log: of its lines, of which the steps are read, and of these alone."""

    @wraps(edit)
    def whole(log: bytes, _other: bytes, chance: random.Random) -> bytes:
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


def _relabel(said: Step, iteration: int) -> None:
    """Give a step another number, and the count of samples that goes with it."""
    value = said["value"]
    value["samples"] = value["samples"] // value["iteration"] * iteration
    value["iteration"] = iteration


def _move(said: Step, seconds: float) -> None:
    """Let a step end later, by both clocks."""
    said["value"]["seconds"] += seconds
    said["time_ms"] += round(1000 * seconds)


@_of_steps
def relabel_an_iteration(_lines: list, steps: list[Step], chance: random.Random) -> None:
    """A step has the number of another, or one that none has."""
    said = chance.choice(steps)
    others = [number for number in range(201) if number != said["value"]["iteration"]]
    _relabel(said, chance.choice(others))


@_of_steps
def count_in_other_steps(_lines: list, steps: list[Step], chance: random.Random) -> None:
    """All iterations are counted double, threefold, .., and with them the samples and the speed."""
    times = chance.randint(2, 5)
    for said in steps:
        _relabel(said, times * said["value"]["iteration"])
        if "throughput" in said["value"]:
            said["value"]["throughput"] *= times


@_of_steps
def scale_one_clock(_lines: list, steps: list[Step], chance: random.Random) -> None:
    """One of the two clocks runs faster or slower, perhaps with the printed speed."""
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


@_of_steps
def skip_iterations(lines: list, steps: list[Step], chance: random.Random) -> None:
    """Some steps are not printed, and those behind them may count on from the steps before."""
    counts = [said["value"]["iteration"] for said in steps]
    for said in chance.sample(steps, chance.randint(1, max(1, len(steps) // 2))):
        lines.remove(said)
        steps.remove(said)
    if chance.random() < 0.5:
        for said, iteration in zip(steps, counts, strict=False):
            _relabel(said, iteration)


@_of_steps
def invent_iterations(lines: list, steps: list[Step], chance: random.Random) -> None:
    """Some steps are printed that the run has not, each behind another."""
    for said in chance.sample(steps, chance.randint(1, 3)):
        new = deepcopy(said)
        _relabel(new, new["value"]["iteration"] + chance.randint(1, 30))
        new["value"].pop("throughput", None)
        _move(new, 0.001)
        lines.insert(lines.index(said) + 1, new)


@_of_steps
def print_a_step_again(lines: list, steps: list[Step], chance: random.Random) -> None:
    """A step is there twice, the second time anywhere, and at another time."""
    new = deepcopy(chance.choice(steps))
    _move(new, chance.uniform(-5, 5))
    lines.insert(lines.index(chance.choice(steps)) + chance.randint(0, 1), new)


@_of_steps
def start_again(lines: list, steps: list[Step], chance: random.Random) -> None:
    """The run starts a second time, between two of its steps; those behind may be moved in time."""
    again = chance.randint(1, len(steps) - 1)
    lines.insert(lines.index(steps[again]), _START)
    for said in steps[again:]:
        _move(said, chance.choice((0.0, 100.0)))


@_of_steps
def lose_the_loss(_lines: list, steps: list[Step], chance: random.Random) -> None:
    """Training diverged, and went on."""
    for said in chance.sample(steps, chance.randint(1, len(steps))):
        said["value"]["loss"] = chance.choice((float("nan"), float("inf"), float("-inf"), None))


_COUNTED = re.compile(
    rb"(?:\| epoch +\d+ step +|\[Training\]\[Iteration |\bstep:)(\d+)(?= \| batches|\]\[Epoch|/\d)"
)
"""An iteration that its line counts in two ways."""


def counts_twice(log: bytes) -> bool:
    """Whether a log counts its iterations in two ways."""
    return len(_COUNTED.findall(log)) > 2


def _counted(lines: list[bytes]) -> dict[int, int]:
    """The iterations of the lines that count in two ways, by their places."""
    found = ((place, _COUNTED.search(line)) for place, line in enumerate(lines))
    return {place: int(match[1]) for place, match in found if match}


def _count_as(line: bytes, iteration: int) -> bytes:
    match = _COUNTED.search(line)
    assert match
    return line[: match.start(1)] + b"%d" % iteration + line[match.end(1) :]


@_of_lines
def skip_and_count_on(lines: list[bytes], chance: random.Random) -> list[bytes]:
    """Lines of iterations are left out, and those behind count on from the ones before."""
    counted = _counted(lines)
    lost = set(chance.sample([*counted][1:-1], chance.randint(1, len(counted) // 2)))
    left = [place for place in counted if place not in lost]
    for place, iteration in zip(left, counted.values(), strict=False):
        lines[place] = _count_as(lines[place], iteration)
    return [line for place, line in enumerate(lines) if place not in lost]


@_of_lines
def invent_and_count_on(lines: list[bytes], chance: random.Random) -> list[bytes]:
    """Lines of iterations are there twice, and the second ones and those behind count on."""
    counted = _counted(lines)
    chosen = set(chance.sample([*counted][:-1], chance.randint(1, len(counted) // 2)))
    iteration, second, *_ = counted.values()
    between, written = second - iteration, []
    for place, line in enumerate(lines):
        for _ in range((place in counted) + (place in chosen)):
            written.append(_count_as(line, iteration))
            iteration += between
        if place not in counted:
            written.append(line)
    return written


OF_LINES: tuple[Edit, ...] = (
    cut_the_end,
    lose_lines,
    lose_early_lines,
    lose_a_stretch,
    repeat_lines,
    repeat_a_stretch,
    mix_up_lines,
    append_itself,
    dress_lines,
    quote_lines,
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
"""These may write another number into a line: one that no other line contradicts may be wrong."""
OF_STEP_LOGS: tuple[Edit, ...] = (
    relabel_an_iteration,
    count_in_other_steps,
    scale_one_clock,
    skip_iterations,
    invent_iterations,
    print_a_step_again,
    start_again,
    lose_the_loss,
)
"""These bend a step log that says its plan: a number must be right or absent all the same."""
OF_COUNTS: tuple[Edit, ...] = (skip_and_count_on, invent_and_count_on)
"""These count anew in a log that counts twice: a number must be right or absent all the same."""
EDITS = (*OF_LINES, *OF_TWO, *OF_BYTES, *OF_STEP_LOGS, *OF_COUNTS)
