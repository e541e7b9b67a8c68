"""Evaluations between the lines of a log: left out where both their ends are stamped."""

import pytest
from reperf.measuring.verdicts import table

from tests.unit.logs.asking import measure_one
from tests.unit.logs.test_field_logs import MLPERF_HEAD, STOP, tracked
from tests.unit.logs.written import _event as event

EPOCH = 168  # samples, as MLPERF_HEAD has it
SECOND = 1000


def evaluated(
    *between: tuple[str, int],
    lines: int = 200,
    every: int = 1,
    training: int = SECOND,
) -> list[str]:
    """A log of epochs of `training` milliseconds, with events and pauses after some.

    Args:
        between: keys of events, and how many milliseconds pass before each.
        lines: epochs.
        every: epochs between two pauses.
        training: milliseconds of an epoch.
    """
    found, clock = [*MLPERF_HEAD], 0
    for epoch in range(1, lines + 1):
        clock += training
        found.append(tracked(epoch, clock, EPOCH))
        for key, pause in between if epoch % every == 0 else ():
            clock += pause
            found.append(event(key, "null", clock))
    return [*found, STOP]


PAIR = (("eval_start", 0), ("eval_stop", 3 * SECOND))


class TestStamped:
    def test_they_are_left_out_with_their_time(self):
        measured = measure_one(evaluated(*PAIR, every=10))
        assert measured.throughput == pytest.approx(EPOCH)
        assert (measured.seconds, measured.evaluations, measured.evaluated) == (100, 10, 30)

    def test_the_row_says_so(self):
        measured = measure_one(evaluated(*PAIR, every=10))
        assert any(" 10: 30 s " in line for line in table([measured]))

    def test_a_window_without_them_is_proposed_first(self):
        lines = evaluated(*PAIR, every=50)
        assert measure_one(lines, widest=True).evaluations == 0
        assert measure_one(lines).widest == (51, 100)

    def test_where_one_lies_between_all_lines_the_widest_leaves_them_out(self):
        measured = measure_one(evaluated(*PAIR), widest=True)
        assert measured.throughput == pytest.approx(EPOCH)
        assert measured.evaluated == 3 * measured.evaluations > 0

    def test_one_of_a_trifle_is_left_out_too(self):
        measured = measure_one(evaluated(("eval_start", 0), ("eval_stop", 5), every=100))
        assert (measured.evaluations, measured.evaluated) == (1, 0.005)

    def test_an_accuracy_behind_the_stop_ends_nothing(self):
        pair = (*PAIR, ("eval_accuracy", 2 * SECOND))
        assert measure_one(evaluated(*pair, every=100)).evaluated == 3

    def test_it_ends_where_the_next_epoch_begins(self):
        over = (
            ("epoch_stop", 0),
            ("eval_start", 0),
            ("epoch_start", 2 * SECOND),
            ("eval_stop", 50),
        )
        measured = measure_one(evaluated(*over, every=10, training=SECOND - 5))
        assert measured.evaluated == 20

    def test_stamps_on_another_clock_are_left_out_of_nothing(self):
        lines = evaluated(*PAIR, every=10)
        lines = [line.replace('"time_ms": ', '"time_ms": 9') if "eval_" in line else line
                 for line in lines]  # fmt: skip
        assert measure_one(lines).reason.startswith("evaluations lie in the window: ")


class TestThoseThatCannotBeToldFromTraining:
    @pytest.mark.parametrize("cut", ["eval_start", "eval_stop"])
    def test_one_end_is_missing(self, cut):
        lines = evaluated(*PAIR, every=50)
        lines = [line for line in lines if cut not in line]
        assert measure_one(lines).reason.startswith("evaluations lie in the window: ")

    def test_lines_stand_between_the_ends(self):
        lines = evaluated()
        at = len(MLPERF_HEAD) + 10
        lines.insert(at, event("eval_start", "null", 10 * SECOND))
        lines.insert(at + 151, event("eval_stop", "null", 160 * SECOND))
        measured = measure_one(lines)
        assert measured.reason.startswith("evaluations lie in the window: ")
        assert measured.widest == (161, 200)

    def test_where_one_holds_lines_no_other_keeps_from_training(self):
        lines = evaluated(*PAIR, every=50)
        at = len(lines) - 10
        lines.insert(at, event("eval_start", "null", 10**9))
        assert measure_one(lines).reason.startswith("evaluations lie in the window: ")

    def test_an_epoch_ends_meanwhile(self):
        over = (("eval_start", 0), ("epoch_stop", SECOND), ("eval_stop", SECOND))
        measured = measure_one(evaluated(*over, every=50))
        assert measured.reason.startswith("evaluations lie in the window: ")

    def test_other_devices_do_them(self):
        """Nothing is printed meanwhile, but as much is trained: without them it would be faster."""
        lines = evaluated(lines=130)
        for epoch in range(129, 40, -1):
            at = len(MLPERF_HEAD) + epoch
            clock = epoch * SECOND
            lines[at:at] = [
                event("eval_start", "null", clock + 100),
                event("eval_stop", "null", clock + 160),
            ]
        measured = measure_one(lines)
        assert measured.reason == (
            "evaluations lie in the window, and training goes on meanwhile: without their time, it "
            "would be 1.06 times as fast as where nothing is evaluated"
        )
        assert measured.widest == (7, 41)

    def test_durations_may_hold_them_or_not(self):
        """As test_field_logs has it of HugeCTR; here a trifle is not left out."""
        lines = [f"[HCTR][INFO][RK0][main]: Iter: {i} Time(100 iters): 0.3675s Loss: 0.1 lr:0.004"
                 for i in range(100, 5001, 100)]  # fmt: skip
        pair = [event("eval_start", "null", 0), event("eval_stop", "null", 10)]
        lines = [event("global_batch_size", "28000"), *lines[:20], *pair, *lines[20:]]
        measured = measure_one(lines, ends=(100, 4000))
        assert (measured.status, measured.evaluations) == ("ok", 0)


class TestReasonsOfAll:
    """`--window all` says what is wrong with the widest window, and of no other."""

    def test_a_run_that_broke_off_broke_off(self):
        lines = evaluated(*PAIR, every=10)[:-1]
        assert measure_one(lines, widest=True).reason.startswith("the end of the run is not in")

    def test_steps_of_no_known_size_are_that(self):
        lines = evaluated(*PAIR, lines=10)
        lines[1] = event("train_samples", "9143")
        assert measure_one(lines, widest=True).reason.startswith("the printed speeds mean 168 ")

    def test_evaluations_that_cannot_be_left_out_are_named(self):
        lines = [line for line in evaluated(*PAIR) if "eval_stop" not in line]
        reason = measure_one(lines, widest=True).reason
        assert reason.startswith("evaluations lie in every stretch of the log behind the warm-up")


class TestTick:
    """A clock is as fine as most of its lines show."""

    def lines(self, *seconds: str) -> list[str]:
        head = event("global_batch_size", "28000")
        return [head, *(
            f"[HCTR][INFO][RK0][main]: Iter: {100 * i} Time(100 iters): {one}s Loss: 0.1 lr:0.004"
            for i, one in enumerate(seconds, 1)
        )]  # fmt: skip

    def test_zeros_that_are_dropped_leave_it_fine(self):
        measured = measure_one(self.lines(*["0.351234"] * 30, "0.35"), widest=True)
        assert measured.status == "ok"
        assert measured.last == 3100

    def test_one_fine_line_makes_no_fine_clock(self):
        measured = measure_one(self.lines(*["0.1"] * 30, "0.100000"), widest=True)
        assert "too coarse" in measured.reason


class TestPrintedSpeeds:
    """They must fit the stamps; a few that are spikes do not matter, whatever their height."""

    def lines(self, every: int, spike: float, *, milliseconds: int = SECOND) -> list[str]:
        return [*MLPERF_HEAD, *(
            tracked(n, n * milliseconds, EPOCH * (1 if n % every else spike)) for n in range(1, 131)
        ), STOP]  # fmt: skip

    def test_every_fifth_may_be_a_spike(self):
        assert measure_one(self.lines(5, 3.0)).throughput == pytest.approx(EPOCH)

    def test_spikes_make_up_for_no_time_that_is_missing(self):
        """On average these speeds fit a batch of 168; most of them do not."""
        measured = measure_one(self.lines(5, 3.5, milliseconds=667))
        assert measured.reason.startswith("the printed speeds mean 112 samples a step")

    def test_one_slow_interval_with_its_slow_speed_fits(self):
        lines = self.lines(1000, 1.0)[:-1]
        late = [tracked(n, n * SECOND + 30 * SECOND, EPOCH) for n in range(61, 131)]
        late[0] = tracked(61, 91 * SECOND, EPOCH / 31)
        measured = measure_one([*lines[: len(MLPERF_HEAD) + 60], *late, STOP])
        assert measured.throughput == pytest.approx(100 * EPOCH / 130)
