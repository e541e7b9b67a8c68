"""Logs as they come when something went wrong, or as somebody bent them.

Every edit takes a log's bytes, those of another log, and a source of chance.
"""

import json
import random
import re
from collections.abc import Callable, Sequence
from typing import Any

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


def dress_lines(log: bytes, _other: bytes, chance: random.Random) -> bytes:
    """All lines went through a launcher, a container, a terminal or a system of another kind."""
    before, behind = chance.choice(DRESSES)
    return b"".join(before + line.rstrip(b"\r\n") + behind for line in _lines(log))


def quote_lines(log: bytes, _other: bytes, chance: random.Random) -> bytes:
    """Lines are quoted in others, anywhere: a help text, a summary, an error."""
    lines = _lines(log)
    for _ in range(chance.randint(1, 4)):
        quoted = chance.choice(QUOTES) + chance.choice(lines)
        lines.insert(chance.randint(0, len(lines)), quoted)
    return b"".join(lines)


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
_FACTORS = (0.01, 0.1, 0.5, 0.9, 1.1, 2.0, 10.0, 100.0)
_START = b'{"namespace": "", "time_ms": 1, "event_type": "INTERVAL_START", "key": "run_start"}\n'


def _steps(log: bytes) -> tuple[list[bytes], dict[int, dict[str, Any]]]:
    """The lines of a step log, and the objects of those that are steps, by their places."""
    lines = _lines(log)
    steps = {
        place: json.loads(line.removeprefix(_MARK))
        for place, line in enumerate(lines)
        if line.startswith(_MARK) and b'"tracked_stats"' in line
    }
    return lines, steps


def _line_of(said: dict[str, Any]) -> bytes:
    return _MARK + json.dumps(said).encode() + b"\n"


def _with(lines: Sequence[bytes], steps: dict[int, dict[str, Any]]) -> bytes:
    return b"".join(
        _line_of(steps[place]) if place in steps else line for place, line in enumerate(lines)
    )


def _relabel(said: dict[str, Any], iteration: int) -> None:
    """Give a step another number, and the count of samples that goes with it."""
    value = said["value"]
    value["samples"] = value["samples"] // value["iteration"] * iteration
    value["iteration"] = iteration


def _move(said: dict[str, Any], seconds: float) -> None:
    """Let a step end later, by both clocks."""
    said["value"]["seconds"] += seconds
    said["time_ms"] += round(1000 * seconds)


def relabel_an_iteration(log: bytes, _other: bytes, chance: random.Random) -> bytes:
    """A step has the number of another, or one that none has."""
    lines, steps = _steps(log)
    said = chance.choice([*steps.values()])
    while (new := chance.randint(0, 200)) == said["value"]["iteration"]:
        pass
    _relabel(said, new)
    return _with(lines, steps)


def count_in_other_steps(log: bytes, _other: bytes, chance: random.Random) -> bytes:
    """All iterations are counted double, threefold, .., and with them the samples and the speed."""
    lines, steps = _steps(log)
    times = chance.randint(2, 5)
    for said in steps.values():
        _relabel(said, times * said["value"]["iteration"])
        if "throughput" in said["value"]:
            said["value"]["throughput"] *= times
    return _with(lines, steps)


def scale_one_clock(log: bytes, _other: bytes, chance: random.Random) -> bytes:
    """One of the two clocks runs faster or slower, perhaps with the printed speed."""
    lines, steps = _steps(log)
    factor, stamps, speeds = chance.choice(_FACTORS), chance.random() < 0.5, chance.random() < 0.7
    first = next(iter(steps.values()))
    began, wrote = first["value"]["seconds"], first["time_ms"]
    for said in steps.values():
        value = said["value"]
        if stamps:
            said["time_ms"] = wrote + round((said["time_ms"] - wrote) * factor)
            continue
        value["seconds"] = began + (value["seconds"] - began) * factor
        if speeds and "throughput" in value:
            value["throughput"] /= factor
    return _with(lines, steps)


def skip_iterations(log: bytes, _other: bytes, chance: random.Random) -> bytes:
    """Some steps are not printed, and those behind them may count on from the steps before."""
    lines, steps = _steps(log)
    lost = set(chance.sample([*steps], chance.randint(1, max(1, len(steps) // 2))))
    counts = [said["value"]["iteration"] for said in steps.values()]
    left = {place: said for place, said in steps.items() if place not in lost}
    if chance.random() < 0.5:
        for said, iteration in zip(left.values(), counts, strict=False):
            _relabel(said, iteration)
    kept = [(place, line) for place, line in enumerate(lines) if place not in lost]
    return b"".join(_line_of(left[place]) if place in left else line for place, line in kept)


def invent_iterations(log: bytes, _other: bytes, chance: random.Random) -> bytes:
    """Some steps are printed that the run has not, each behind another."""
    lines, steps = _steps(log)
    for place in sorted(chance.sample([*steps], chance.randint(1, 3)), reverse=True):
        new = json.loads(lines[place].removeprefix(_MARK))
        _relabel(new, new["value"]["iteration"] + chance.randint(1, 30))
        new["value"].pop("throughput", None)
        _move(new, 0.001)
        lines.insert(place + 1, _line_of(new))
    return b"".join(lines)


def print_a_step_again(log: bytes, _other: bytes, chance: random.Random) -> bytes:
    """A step is there twice, the second time anywhere, and at another time."""
    lines, steps = _steps(log)
    new = json.loads(json.dumps(chance.choice([*steps.values()])))
    _move(new, chance.uniform(-5, 5))
    lines.insert(chance.choice([*steps]) + chance.randint(0, 1), _line_of(new))
    return b"".join(lines)


def start_again(log: bytes, _other: bytes, chance: random.Random) -> bytes:
    """The run starts a second time, between two of its steps; those behind may be moved in time."""
    lines, steps = _steps(log)
    places = [*steps]
    again = chance.randint(1, len(places) - 1)
    for place in places[again:]:
        _move(steps[place], chance.choice((0.0, 100.0)))
    rest = _with(lines[places[again] :], {p - places[again]: s for p, s in steps.items()})
    return b"".join(lines[: places[again]]) + _MARK + _START + rest


def lose_the_loss(log: bytes, _other: bytes, chance: random.Random) -> bytes:
    """Training diverged, and went on."""
    lines, steps = _steps(log)
    for said in chance.sample([*steps.values()], chance.randint(1, len(steps))):
        said["value"]["loss"] = chance.choice((float("nan"), float("inf"), float("-inf"), None))
    return _with(lines, steps)


_COUNTED = re.compile(
    rb"(?:\| epoch +\d+ step +|\[Training\]\[Iteration |\bstep:)(\d+)(?= \| batches|\]\[Epoch|/\d)"
)
"""An iteration that its line counts in two ways."""


def counts_twice(log: bytes) -> bool:
    """Whether a log counts its iterations in two ways."""
    return len(_COUNTED.findall(log)) > 2


def _counted(log: bytes) -> tuple[list[bytes], dict[int, int]]:
    """The lines of a log, and the iterations of those that count in two ways, by their places."""
    lines = _lines(log)
    found = ((place, _COUNTED.search(line)) for place, line in enumerate(lines))
    return lines, {place: int(match[1]) for place, match in found if match}


def _count_as(line: bytes, iteration: int) -> bytes:
    match = _COUNTED.search(line)
    assert match
    return line[: match.start(1)] + b"%d" % iteration + line[match.end(1) :]


def skip_and_count_on(log: bytes, _other: bytes, chance: random.Random) -> bytes:
    """Lines of iterations are left out, and those behind count on from the ones before."""
    lines, counted = _counted(log)
    lost = set(chance.sample([*counted][1:-1], chance.randint(1, len(counted) // 2)))
    left = [place for place in counted if place not in lost]
    for place, iteration in zip(left, counted.values(), strict=False):
        lines[place] = _count_as(lines[place], iteration)
    return b"".join(line for place, line in enumerate(lines) if place not in lost)


def invent_and_count_on(log: bytes, _other: bytes, chance: random.Random) -> bytes:
    """Lines of iterations are there twice, and the second ones and those behind count on."""
    lines, counted = _counted(log)
    chosen = set(chance.sample([*counted][:-1], chance.randint(1, len(counted) // 2)))
    first, second, *_ = counted.values()
    iteration, written = first, []
    for place, line in enumerate(lines):
        for _ in range((place in counted) + (place in chosen)):
            written.append(_count_as(line, iteration))
            iteration += second - first
        if place not in counted:
            written.append(line)
    return b"".join(written)


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
"""These may write another number into a line; see reads_otherwise."""
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
