"""Evaluations between the lines of a log: left out where both their ends are stamped."""

from functools import partial

import pytest
from reperf.logs.facts import Facts
from reperf.measuring.found_logs import RunResult
from reperf.measuring.results_table import table

from tests.unit.logs.asking import case, cases, check, measure_one
from tests.unit.logs.mlperf_lines import HEAD, STOP, evaluation, event, says, tracked

EPOCH = 168  # samples, as HEAD has it
SECOND = 1000
PAIR = (("eval_start", 0), ("eval_stop", 3 * SECOND))


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


def beside_training() -> list[str]:
    """Nothing is printed meanwhile, but as much is trained: without them it would be faster."""
    lines = evaluated(lines=130)
    for clock in range(129 * SECOND, 40 * SECOND, -SECOND):
        lines = inserted(clock // SECOND, *evaluation(clock + 100, clock + 160), log=lines)
    return lines


def skipped() -> list[str]:
    """Flux of MLPerf v5.1: an evaluation lies in what is skipped of a log."""
    lines, clock = says(global_batch_size=8), 0
    for step in range(10, 20_001, 10):
        clock += SECOND
        counts = {"samples_count": 8 * step, "step": step}
        lines.append(event("tracked_stats", {"train_loss": 1.0}, clock, **counts))
        if step == 70 or step % 7000 == 0:
            start, stop = evaluation(clock, clock + 200)
            lines += [start, *["x" * 1000] * 100, stop]
            clock += 200
    return [*lines, STOP]


def lacking(key: str, lines: list[str]) -> list[str]:
    return [line for line in lines if key not in line]


def speeds(every: int, spike: float, milliseconds: int = SECOND) -> list[str]:
    """A log of whose printed speeds some are spikes."""
    printed = (EPOCH * (1 if n % every else spike) for n in range(1, 131))
    steps = (tracked(n, n * milliseconds, one) for n, one in enumerate(printed, 1))
    return [*HEAD, *steps, STOP]


SOME, FEW, EACH = evaluated(*PAIR, every=10), evaluated(*PAIR, every=50), evaluated(*PAIR)
TRIFLE = evaluated(("eval_start", 0), ("eval_stop", 5), every=100)
ACCURACY_AFTER = evaluated(*PAIR, ("eval_accuracy", 2 * SECOND), every=100)
NEXT = ("epoch_stop", 0), ("eval_start", 0), ("epoch_start", 2000), ("eval_stop", 50)
MEANWHILE = ("eval_start", 0), ("epoch_stop", SECOND), ("eval_stop", SECOND)
OTHER_CLOCK = [x.replace('"time_ms": ', '"time_ms": 9') if "eval_" in x else x for x in SOME]
START, STOPPED = evaluation(10 * SECOND, 160 * SECOND)
OPEN = [*FEW[:-10], event("eval_start", ms=10**9), *FEW[-10:]]
NO_SIZE = evaluated(*PAIR, lines=10)
NO_SIZE[1] = event("train_samples", 9143)
LATE = [tracked(n, (n + 30) * SECOND, EPOCH) for n in range(62, 131)]
SLOW = [*speeds(1000, 1.0)[: len(HEAD) + 60], tracked(61, 91 * SECOND, EPOCH / 31), *LATE, STOP]
BESIDE = (
    "evaluations lie in the window, and training goes on meanwhile: without their time, it would "
    "be 1.06 times as fast as where nothing is evaluated"
)
ALL = partial(case, wide=True)
REFUSED = "evaluations lie in the window: "
EVERYWHERE = "evaluations lie in every stretch of the log after the warm-up"


@cases(
    case("left out", SOME, throughput=168.0, seconds=100.0, evaluations=10, evaluated=30.0),
    case("two", evaluated(*PAIR * 2, every=10), seconds=100.0, evaluations=20, evaluated=60.0),
    ALL("a window without them is taken first", FEW, evaluations=0),
    case("and proposed", FEW, widest=(51, 100)),
    ALL("between all lines", EACH, throughput=168.0),
    case("of a trifle", TRIFLE, evaluations=1, evaluated=0.005),
    case("an accuracy behind the stop ends nothing", ACCURACY_AFTER, evaluated=3.0),
    # It ends where the next epoch begins.
    case("the next epoch", evaluated(*NEXT, every=10, training=SECOND - 5), evaluated=20.0),
    case("skipped", skipped(), evaluations=1),
    *(case(f"no {key}", lacking(key, FEW), REFUSED) for key in ("eval_start", "eval_stop")),
    *(ALL(f"never {key}", lacking(key, EACH), EVERYWHERE) for key in ("eval_start", "eval_stop")),
    case("another clock", OTHER_CLOCK, REFUSED),
    case(
        "holds lines", inserted(10, START, log=inserted(160, STOPPED)), REFUSED, widest=(161, 200)
    ),
    # Where one holds lines, no other keeps from training.
    case("one is open", OPEN, REFUSED),
    case("an epoch ends meanwhile", evaluated(*MEANWHILE, every=50), REFUSED),
    case("other devices do them", beside_training(), BESIDE, widest=(7, 41)),
    # Of the widest window, the reason is its own.
    ALL("broken off", SOME[:-1], "the end of the run is not in"),
    ALL("of no known size", NO_SIZE, "the printed speeds mean 168 "),
    # Printed speeds fit the stamps; a few that are spikes do not matter, whatever their height.
    case("every fifth speed is a spike", speeds(5, 3.0), throughput=168.0),
    # On average, these fit; most of them do not.
    case(
        "spikes make up for no time",
        speeds(5, 3.5, 667),
        "the printed speeds mean 112 samples a step",
    ),
    case("a slow interval and its slow speed", SLOW, throughput=100 * EPOCH / 130),
)
def test_evaluations_are_left_out_or_refused(log, how, reason, expected):
    check(measure_one(log, **how), reason, **expected)


def test_their_time_is_in_the_table():
    lines = table([RunResult(measure_one(SOME), Facts())])
    assert any(" 10: 30 s " in line for line in lines)
    every = measure_one(EACH, widest=True)
    assert every.evaluated == 3 * every.evaluations > 0


@pytest.mark.parametrize(
    ("usual", "last", "reason"), [("0.351234", "0.35", ""), ("0.1", "0.100000", "..too coarse")]
)
def test_a_clock_is_as_fine_as_most_of_its_lines_show(usual, last, reason):
    lines = [
        f"[HCTR][INFO][RK0][main]: Iter: {100 * i} Time(100 iters): {one}s Loss: 0.1 lr:0.004"
        for i, one in enumerate([*[usual] * 30, last], 1)
    ]
    check(measure_one([*says(global_batch_size=28000), *lines], widest=True), reason)
