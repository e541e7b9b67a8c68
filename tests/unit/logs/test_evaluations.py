"""Evaluations between the lines of a log: left out where both their ends are stamped."""

import pytest
from reperf.logs.facts import Facts
from reperf.measuring.found_logs import RunResult
from reperf.measuring.results_table import table

from tests.unit.logs.asking import measure_one
from tests.unit.logs.mlperf_lines import HEAD, STOP, evaluation, event, says, tracked

EPOCH = 168  # samples, as HEAD has it
SECOND = 1000
PAIR = (("eval_start", 0), ("eval_stop", 3 * SECOND))
REFUSED = "evaluations lie in the window: "


def evaluated(
    *between: tuple[str, int], lines: int = 200, every: int = 1, training: int = SECOND
) -> list[str]:
    """A log of epochs of `training` milliseconds, with events and pauses after some.

    Args:
        between: keys of events, and how many milliseconds pass before each.
        lines: epochs.
        every: epochs between two pauses.
        training: milliseconds of an epoch.
    """
    found, clock = [*HEAD], 0
    for epoch in range(1, lines + 1):
        clock += training
        found.append(tracked(epoch, clock, EPOCH))
        for key, pause in between if epoch % every == 0 else ():
            clock += pause
            found.append(event(key, ms=clock))
    return [*found, STOP]


def inserted(at: int, *more: str, log: list[str] | None = None) -> list[str]:
    """A log in which more stands behind the line of an epoch."""
    log, place = log or evaluated(), len(HEAD) + at
    return [*log[:place], *more, *log[place:]]


class TestStamped:
    @pytest.mark.parametrize(("at_once", "count", "seconds"), [(1, 10, 30), (2, 20, 60)])
    def test_they_are_left_out_with_their_time_and_the_row_says_so(self, at_once, count, seconds):
        measured = measure_one(evaluated(*PAIR * at_once, every=10))
        assert measured.throughput == pytest.approx(EPOCH)
        found = (measured.seconds, measured.evaluations, measured.evaluated)
        assert found == (100, count, seconds)
        lines = table([RunResult(measured, Facts())])
        assert any(f" {count}: {seconds} s " in line for line in lines)

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
        keys, pauses = ("epoch_stop", "eval_start", "epoch_start", "eval_stop"), (0, 0, 2000, 50)
        over = zip(keys, pauses, strict=True)
        assert measure_one(evaluated(*over, every=10, training=SECOND - 5)).evaluated == 20


class TestThoseThatCannotBeToldFromTraining:
    @pytest.mark.parametrize("cut", ["eval_start", "eval_stop"])
    def test_one_end_is_missing(self, cut):
        lines = [line for line in evaluated(*PAIR, every=50) if cut not in line]
        assert measure_one(lines).reason.startswith(REFUSED)
        lines = [line for line in evaluated(*PAIR) if cut not in line]
        reason = measure_one(lines, widest=True).reason
        assert reason.startswith("evaluations lie in every stretch of the log after the warm-up")

    def test_stamps_are_on_another_clock(self):
        lines = evaluated(*PAIR, every=10)
        later = [x.replace('"time_ms": ', '"time_ms": 9') if "eval_" in x else x for x in lines]
        assert measure_one(later).reason.startswith(REFUSED)

    def test_lines_stand_between_the_ends(self):
        start, stop = evaluation(10 * SECOND, 160 * SECOND)
        measured = measure_one(inserted(10, start, log=inserted(160, stop)))
        assert measured.reason.startswith(REFUSED)
        assert measured.widest == (161, 200)

    def test_where_one_holds_lines_no_other_keeps_from_training(self):
        lines = evaluated(*PAIR, every=50)
        lines.insert(len(lines) - 10, event("eval_start", ms=10**9))
        assert measure_one(lines).reason.startswith(REFUSED)

    def test_an_epoch_ends_meanwhile(self):
        over = (("eval_start", 0), ("epoch_stop", SECOND), ("eval_stop", SECOND))
        assert measure_one(evaluated(*over, every=50)).reason.startswith(REFUSED)

    def test_other_devices_do_them(self):
        """Nothing is printed meanwhile, but as much is trained: without them it would be faster."""
        lines = evaluated(lines=130)
        for epoch in range(129, 40, -1):
            clock = epoch * SECOND
            lines = inserted(epoch, *evaluation(clock + 100, clock + 160), log=lines)
        measured = measure_one(lines)
        assert measured.reason == (
            "evaluations lie in the window, and training goes on meanwhile: without their time, it "
            "would be 1.06 times as fast as where nothing is evaluated"
        )
        assert measured.widest == (7, 41)


def test_of_the_widest_window_the_reason_is_its_own():
    """A run that broke off, and steps of no known size, whose evaluations could be left out."""
    cut = measure_one(evaluated(*PAIR, every=10)[:-1], widest=True)
    assert cut.reason.startswith("the end of the run is not in")
    lines = evaluated(*PAIR, lines=10)
    lines[1] = event("train_samples", 9143)
    assert measure_one(lines, widest=True).reason.startswith("the printed speeds mean 168 ")


@pytest.mark.parametrize(
    ("usual", "last", "status", "reason"),
    [("0.351234", "0.35", "ok", ""), ("0.1", "0.100000", "refused", "too coarse")],
)
def test_a_clock_is_as_fine_as_most_of_its_lines_show(usual, last, status, reason):
    lines = [
        f"[HCTR][INFO][RK0][main]: Iter: {100 * i} Time(100 iters): {one}s Loss: 0.1 lr:0.004"
        for i, one in enumerate([*[usual] * 30, last], 1)
    ]
    measured = measure_one([*says(global_batch_size=28000), *lines], widest=True)
    assert measured.status == status
    assert reason in measured.reason


class TestPrintedSpeeds:
    """They must fit the stamps; a few that are spikes do not matter, whatever their height."""

    def lines(self, every: int, spike: float, *, milliseconds: int = SECOND) -> list[str]:
        speeds = (EPOCH * (1 if n % every else spike) for n in range(1, 131))
        return [*HEAD, *(tracked(n, n * milliseconds, one) for n, one in enumerate(speeds, 1))]

    def test_every_fifth_may_be_a_spike(self):
        assert measure_one([*self.lines(5, 3.0), STOP]).throughput == pytest.approx(EPOCH)

    def test_spikes_make_up_for_no_time_that_is_missing(self):
        """On average these speeds fit a batch of 168; most of them do not."""
        measured = measure_one([*self.lines(5, 3.5, milliseconds=667), STOP])
        assert measured.reason.startswith("the printed speeds mean 112 samples a step")

    def test_one_slow_interval_with_its_slow_speed_fits(self):
        late = [tracked(n, (n + 30) * SECOND, EPOCH) for n in range(62, 131)]
        lines = self.lines(1000, 1.0)[: len(HEAD) + 60]
        measured = measure_one([*lines, tracked(61, 91 * SECOND, EPOCH / 31), *late, STOP])
        assert measured.throughput == pytest.approx(100 * EPOCH / 130)


def test_an_evaluation_in_what_is_skipped_of_a_log_is_not_taken_to_go_on():
    """Flux of MLPerf v5.1: lines were taken to be printed while devices evaluate."""
    lines, clock = says(global_batch_size=8), 0
    for step in range(10, 20_001, 10):
        clock += SECOND
        counts = {"samples_count": 8 * step, "step": step}
        lines.append(event("tracked_stats", {"train_loss": 1.0}, clock, **counts))
        if step == 70 or step % 7000 == 0:
            start, stop = evaluation(clock, clock + 200)
            lines += [start, *["x" * 1000] * 100, stop]
            clock += 200
    measured = measure_one([*lines, STOP])
    assert (measured.status, measured.evaluations) == ("ok", 1)
