"""Logs that nobody knows, by a pattern that a user gives: the same rule, the same refusals."""

import io
import json
from concurrent.futures import ThreadPoolExecutor

import pytest
from reperf.cli import main
from reperf.errors import ReperfError
from reperf.logs import user_pattern
from reperf.logs.user_pattern import format_of
from reperf.measuring.measure import Measurement, Method, measure_log

from tests.unit.logs.asking import encode

STAMPED = r"\[(?P<time>[^]]+)\] it#(?P<iteration>\d+) seen=(?P<samples>\d+)"
UNCOUNTED = STAMPED.replace("?P<samples>", "")
TIMED = r"it (?P<iteration>\d+) took (?P<duration_ms>\S+) ms"
DAY = "2024-01-01 10:{:02d}:{:02d}.250"
BATCH = (("global_batch", 64),)


def measured(pattern: str, lines: list[str] | bytes, facts: tuple = ()) -> Measurement:
    log = lines if isinstance(lines, bytes) else encode(lines)
    told = [("the command line", facts)]
    [(found, *_)] = measure_log("log", io.BytesIO(log), Method(), format_of(pattern), told)
    return found


def stamped(stamp: str = DAY) -> list[str]:
    return [f"[{stamp.format(i // 60, i % 60)}] it#{i} seen={64 * i}" for i in range(1, 201)]


def taking(took: str, numbers: range = range(1, 201)) -> list[str]:
    return [f"it {i} took {took}" for i in numbers]


class TestMeasured:
    @pytest.mark.parametrize(
        "stamp", [DAY, "2024/01/01T10:{:02d}:{:02d},250+01:00", "10:{:02d}:{:02d}"]
    )
    def test_stamps_of_any_form_and_samples_so_far(self, stamp):
        found = measured(STAMPED, stamped(stamp))
        assert (found.status, found.throughput, found.global_batch) == ("ok", 64, 64)

    def test_durations_in_milliseconds_also_where_a_progress_bar_rewrites_lines(self):
        lines = taking("250.0 ms")
        found = measured(TIMED, lines, BATCH)
        assert found.throughput == pytest.approx(256)
        assert found.widest == (20, 200)
        assert measured(TIMED, [f"x\r{line}\rx" for line in lines], BATCH) == found

    @pytest.mark.parametrize("rate", ["nan", "inf", "-inf"])
    def test_a_speed_that_is_no_number_says_nothing(self, rate):
        lines = taking(f"250.0 ms, {rate} img/s")
        found = measured(rf"{TIMED}, (?P<rate>\S+) img", lines, BATCH)
        assert found.throughput == pytest.approx(256)


class TestRefused:
    def test_a_window_that_begins_in_seconds_and_ends_in_dates(self):
        seconds = [f"[{i}.25] it#{i} seen={64 * i}" for i in range(1, 60)]
        found = measured(STAMPED, seconds + stamped()[59:])
        assert found.reason.startswith("too short: it ends at iteration 59")

    @pytest.mark.parametrize(
        ("pattern", "lines", "facts", "reason"),
        [
            (UNCOUNTED, stamped(), (), "the global batch is not known"),
            (
                STAMPED,
                stamped(),
                (("global_batch", 32),),
                "global batch is 32 by the command line, 64 by the line of iteration 21",
            ),
            # Durations of single iterations are not those between them.
            (TIMED, taking("250.0 ms", range(10, 201, 10)), BATCH, "is not in the log"),
            (TIMED, taking("1 ms"), BATCH, "too coarse"),
            *(
                (TIMED, taking(f"{no_number} ms"), (), user_pattern.UNMATCHED)
                for no_number in ("nan", "inf", "x", "9" * 50)
            ),
        ],
    )
    def test_what_no_rule_can_measure(self, pattern, lines, facts, reason):
        found = measured(pattern, lines, facts)
        assert found.status == "refused"
        assert reason in found.reason

    def test_a_number_that_is_cut_off_is_none(self):
        log = encode(taking("250.0 ms", range(1, 120))) + b"it 120 took 2500 ms"
        assert measured(TIMED, log).last_printed == 119


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        (r"it (?P<iteration>\d+", "is no regular expression: "),
        (r"(?i)it (?P<iteration>\d+) (?P<time>\d+)", "holds no text that is in every line"),
        (r"it (\d+)", "names no group; allowed: "),
        (r"it (?P<iteration>\d+) (?P<time>.)(?P<duration>.)", "names duration, iteration, time; "),
        (r"(?P<iteration>\d+)(?P<time>\d+)", "holds no text that is in every line"),
        (r"(?P<iteration>\d+)(?: s)?(?P<time>\d+)", "holds no text that is in every line"),
        (r"it (?P<iteration>\d+) (?P<time>\d+)|x", "holds no text that is in every line"),
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


@pytest.mark.parametrize(
    "asked", [["--pattern", STAMPED, "--format", "mllog"], ["--pattern", "it"]]
)
def test_the_command_refuses_it(tmp_path, capsys, asked):
    with pytest.raises(SystemExit) as stopped:
        main(["measure", str(tmp_path), *asked])
    assert stopped.value.code == 2
    assert "reperf measure: --pattern: " in capsys.readouterr().err
