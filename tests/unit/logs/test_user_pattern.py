"""Logs that nobody knows, by a pattern that a user gives: the same rule, the same refusals."""

import io
import json
from functools import partial

import pytest
from reperf.cli import main
from reperf.errors import ReperfError
from reperf.logs import user_pattern
from reperf.logs.user_pattern import format_of
from reperf.measuring.measure import Measurement, Method, measure_log

STAMPED = r"\[(?P<time>[^]]+)\] it#(?P<iteration>\d+) seen=(?P<samples>\d+)"
TIMED = r"it (?P<iteration>\d+) took (?P<duration_ms>\S+) ms"
BATCH = (("global_batch", 64),)


def measured(pattern: str, lines: list[str], facts: tuple = (), **how: object) -> Measurement:
    stream = io.BytesIO("".join(f"{line}\n" for line in lines).encode())
    told = [("the command line", facts)]
    [[found, *_]] = measure_log("log", stream, Method(**how), format_of(pattern), told)
    return found


def stamped(stamp: str = "2024-01-01 10:{:02d}:{:02d}.250") -> list[str]:
    return [f"[{stamp.format(i // 60, i % 60)}] it#{i} seen={64 * i}" for i in range(1, 201)]


class TestMeasured:
    @pytest.mark.parametrize(
        "stamp",
        [
            "2024-01-01 10:{:02d}:{:02d}.250",
            "2024/01/01T10:{:02d}:{:02d},250+01:00",
            "10:{:02d}:{:02d}",
        ],
    )
    def test_stamps_of_any_form_and_samples_so_far(self, stamp):
        found = measured(STAMPED, stamped(stamp))
        assert (found.status, found.throughput, found.global_batch) == ("ok", 64, 64)

    def test_durations_in_milliseconds(self):
        found = measured(TIMED, [f"it {i} took 250.0 ms" for i in range(1, 201)], BATCH)
        assert found.throughput == pytest.approx(256)
        assert found.widest == (20, 200)

    def test_lines_that_a_progress_bar_rewrites(self):
        lines = [f"x\rit {i} took 250.0 ms\rx" for i in range(1, 131)]
        assert measured(TIMED, lines, BATCH).throughput == pytest.approx(256)

    @pytest.mark.parametrize("rate", ["nan", "inf", "-inf"])
    def test_a_speed_that_is_no_number_says_nothing(self, rate):
        lines = [f"it {i} took 250.0 ms, {rate} img/s" for i in range(1, 131)]
        found = measured(rf"{TIMED}, (?P<rate>\S+) img", lines, BATCH)
        assert found.throughput == pytest.approx(256)


class TestRefused:
    def test_a_window_that_begins_in_seconds_and_ends_in_dates(self):
        lines = [
            f"[{i}.25] it#{i} seen={64 * i}" if i < 60 else line
            for i, line in enumerate(stamped(), 1)
        ]
        assert measured(STAMPED, lines).reason.startswith("too short: it ends at iteration 59")

    def test_nobody_says_the_batch(self):
        lines = [line.replace("seen=", "seen=1") for line in stamped()]
        found = measured(STAMPED.replace(r"(?P<samples>\d+)", r"\d+"), lines)
        assert found.reason.startswith("the global batch is not known")

    def test_the_user_says_another_batch_than_the_log_counts(self):
        found = measured(STAMPED, stamped(), (("global_batch", 32),))
        assert found.reason == (
            "global batch is 32 by the command line, 64 by the line of iteration 21"
        )

    def test_durations_of_single_iterations_are_not_those_between(self):
        lines = [f"it {i} took 250.0 ms" for i in range(10, 201, 10)]
        assert "is not in the log" in measured(TIMED, lines, BATCH).reason

    def test_a_coarse_clock(self):
        lines = [f"it {i} took 1 ms" for i in range(1, 201)]
        assert "too coarse" in measured(TIMED, lines, BATCH).reason

    def test_a_number_that_is_cut_off_is_none(self):
        log = "".join(f"it {i} took 250.0 ms\n" for i in range(1, 120)) + "it 120 took 2500 ms"
        [[found, *_]] = measure_log("log", io.BytesIO(log.encode()), Method(), format_of(TIMED))
        assert found.last_printed == 119

    @pytest.mark.parametrize("text", ["nan", "inf", "x", "9" * 50])
    def test_what_is_no_number_is_no_record(self, text):
        found = measured(TIMED, [f"it {i} took {text} ms" for i in range(1, 201)])
        assert found.reason == user_pattern.UNMATCHED


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


def test_a_pattern_that_would_take_for_ever_is_given_up(monkeypatch):
    monkeypatch.setattr(user_pattern, "PATIENCE", 0.1)
    forever = partial(measured, r"it#(?:a+)+b(?P<iteration>\d+) (?P<time>\d+)")
    with pytest.raises(ReperfError, match="takes more than"):
        forever(["it#" + "a" * 60])


def test_the_command_takes_it(tmp_path, capsys):
    log = tmp_path / "train.log"
    log.write_text("".join(f"{line}\n" for line in stamped()))
    assert main(["measure", str(log), "--json", "--pattern", STAMPED]) == 0
    assert json.loads(capsys.readouterr().out)["throughput"] == 64


@pytest.mark.parametrize("more", [["--format", "mllog"], []])
def test_the_command_refuses_it(tmp_path, capsys, more):
    pattern = STAMPED if more else "it"
    with pytest.raises(SystemExit) as stopped:
        main(["measure", str(tmp_path), "--pattern", pattern, *more])
    assert stopped.value.code == 2
    assert "reperf measure: --pattern: " in capsys.readouterr().err
