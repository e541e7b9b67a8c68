"""Logs that nobody knows, by a pattern that a user gives: the same rule, the same refusals."""

import io
import json
from concurrent.futures import ThreadPoolExecutor

import pytest
from reperf.cli import main
from reperf.errors import ReperfError
from reperf.logs.user_pattern import UNMATCHED, format_of
from reperf.measuring.measure import Measurement, Method, measure_log

from tests.unit.logs.asking import check, encode

STAMPED = r"\[(?P<time>[^]]+)\] it#(?P<iteration>\d+) seen=(?P<samples>\d+)"
UNCOUNTED = STAMPED.replace("?P<samples>", "")
TIMED = r"it (?P<iteration>\d+) took (?P<duration_ms>\S+) ms"
RATED = rf"{TIMED}, (?P<rate>\S+) img"
DAY = "2024-01-01 10:{:02d}:{:02d}.250"
BATCH, OTHER_BATCH = (("global_batch", 64),), (("global_batch", 32),)


def measured(pattern: str, lines: list[str] | bytes, facts: tuple = ()) -> Measurement:
    log = lines if isinstance(lines, bytes) else encode(lines)
    told = [("the command line", facts)]
    [(found, *_)] = measure_log("log", io.BytesIO(log), Method(), format_of(pattern), told)
    return found


def stamped(stamp: str = DAY) -> list[str]:
    return [f"[{stamp.format(i // 60, i % 60)}] it#{i} seen={64 * i}" for i in range(1, 201)]


def taking(took: str, numbers: range = range(1, 201)) -> list[str]:
    return [f"it {i} took {took}" for i in numbers]


SECONDS_THEN_DATES = [f"[{i}.25] it#{i} seen={64 * i}" for i in range(1, 60)] + stamped()[59:]
REWRITTEN = [f"x\r{line}\rx" for line in taking("250.0 ms")]  # as a progress bar does
SPEEDS = "nan", "inf", "-inf"
NO_NUMBERS = "nan", "inf", "x", "9" * 50
CUT = encode(taking("250.0 ms", range(1, 120))) + b"it 120 took 2500 ms"
OTHERS = "global batch is 32 by the command line, 64 by the line of iteration 21"


@pytest.mark.parametrize(
    ("pattern", "lines", "facts", "reason", "expected"),
    [
        *(
            (STAMPED, stamped(stamp), (), "", {"throughput": 64.0, "global_batch": 64})
            for stamp in (DAY, "2024/01/01T10:{:02d}:{:02d},250+01:00", "10:{:02d}:{:02d}")
        ),
        (TIMED, taking("250.0 ms"), BATCH, "", {"throughput": 256.0, "widest": (20, 200)}),
        (TIMED, REWRITTEN, BATCH, "", {"throughput": 256.0, "widest": (20, 200)}),
        # A speed that is no number says nothing.
        *(
            (RATED, taking(f"250.0 ms, {x} img/s"), BATCH, "", {"throughput": 256.0})
            for x in SPEEDS
        ),
        # A window that begins in seconds and ends in dates is none.
        (STAMPED, SECONDS_THEN_DATES, (), "too short: it ends at iteration 59", {}),
        (UNCOUNTED, stamped(), (), "the global batch is not known", {}),
        (STAMPED, stamped(), OTHER_BATCH, OTHERS, {}),
        # Durations of single iterations are not those between them.
        (TIMED, taking("250.0 ms", range(10, 201, 10)), BATCH, "..is not in the log", {}),
        (TIMED, taking("1 ms"), BATCH, "..too coarse", {}),
        *((TIMED, taking(f"{no_number} ms"), (), UNMATCHED, {}) for no_number in NO_NUMBERS),
        # A number that is cut off is none.
        (TIMED, CUT, BATCH, "too short", {"last_printed": 119}),
    ],
)
def test_what_a_pattern_finds_is_measured_or_says_why_not(pattern, lines, facts, reason, expected):
    check(measured(pattern, lines, facts), reason, **expected)


NO_TEXT = "holds no text that is in every line"


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        (r"it (?P<iteration>\d+", "is no regular expression: "),
        (r"(?i)it (?P<iteration>\d+) (?P<time>\d+)", NO_TEXT),
        (r"it (\d+)", "names no group; allowed: "),
        (r"it (?P<iteration>\d+) (?P<time>.)(?P<duration>.)", "names duration, iteration, time; "),
        (r"(?P<iteration>\d+)(?P<time>\d+)", NO_TEXT),
        (r"(?P<iteration>\d+)(?: s)?(?P<time>\d+)", NO_TEXT),
        (r"it (?P<iteration>\d+) (?P<time>\d+)|x", NO_TEXT),
    ],
)
def test_a_bad_pattern_is_one_clear_line(pattern, reason):
    with pytest.raises(ReperfError) as error:
        format_of(pattern)
    assert str(error.value).startswith(f"got '{pattern}': {reason}")
    assert "\n" not in str(error.value)


def test_a_pattern_is_read_outside_of_the_main_thread():
    with ThreadPoolExecutor() as pool:
        assert pool.submit(measured, STAMPED, stamped()).result().throughput == 64


def test_the_command_takes_it(tmp_path, capsys):
    log = tmp_path / "train.log"
    log.write_bytes(encode(stamped()))
    assert main(["measure", str(log), "--json", "--pattern", STAMPED]) == 0
    assert json.loads(capsys.readouterr().out)["throughput"] == 64
    for asked in (["--pattern", STAMPED, "--format", "mllog"], ["--pattern", "it"]):
        with pytest.raises(SystemExit) as stopped:
            main(["measure", str(tmp_path), *asked])
        assert stopped.value.code == 2
        assert "reperf measure: --pattern: " in capsys.readouterr().err
