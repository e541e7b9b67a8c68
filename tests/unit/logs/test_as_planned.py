"""A log of ours prints what its plan says; clocks that disagree, were set, or stood still."""

import json
import re
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial

import pytest
from trainers.contract.steplog import printed_iterations

from tests.helpers.step_logs import BOOTED, event, planned_log, stamped, step, step_log
from tests.unit.logs.asking import case, cases, check, measure_one
from tests.unit.logs.written import printed

SIX = {"iterations": 6, "every": 1, "rate": 10.0}
ENDS = (1, 6)
Values = dict[str, object]


def at(lines: list[str], iteration: int) -> int:
    """Where the line of an iteration stands."""
    return next(i for i, line in enumerate(lines) if f'"iteration": {iteration},' in line)


def seconds_in(*lines: str) -> list[float]:
    return [float(one) for one in re.findall(r'"seconds": ([\d.]+)', "\n".join(lines))]


def edited(
    lines: list[str], change: Callable[[Values, Values], object], only: set[int] | None = None
) -> list[str]:
    """A log whose steps are changed.

    Args:
        change: what happens to the object of a step, and to its value.
        only: the iterations whose lines change; None: all.
    """

    def new(line: str) -> str:
        if '"tracked_stats"' not in line:
            return line
        said = json.loads(line.partition(" ")[2])
        if only is None or said["value"]["iteration"] in only:
            change(said, said["value"])
        return f":::MLLOG {json.dumps(said)}"

    return list(map(new, lines))


def test_what_a_run_prints_is_measured():
    assert list(printed_iterations(6, 1)) == [1, 2, 3, 4, 5, 6]
    assert list(printed_iterations(7, 3)) == [3, 6]
    for plan, ends in (({}, (20, 120)), (SIX, ENDS), ({"iterations": 60, "every": 5}, (20, 60))):
        lines = planned_log(**plan)
        found = measure_one(lines, ends=ends)
        start, stop = seconds_in(*(lines[at(lines, one)] for one in ends))
        assert found.throughput == pytest.approx((ends[1] - ends[0]) * 16 / (stop - start))
        assert found.sources["print_every"] == "the log"


def without(lines: list[str], iteration: int) -> list[str]:
    """A log that lacks the line of an iteration."""
    place = at(lines, iteration)
    return [*lines[:place], *lines[place + 1 :]]


def inserted(lines: list[str], iteration: int, behind: int) -> list[str]:
    """A log that prints one more iteration, right after another."""
    place = at(lines, behind) + 1
    seconds = seconds_in(lines[place - 1])[0] + 0.001
    return [*lines[:place], stamped(step(iteration, seconds, 16), seconds), *lines[place:]]


def counted_twice(_said: Values, value: Values) -> None:
    value |= {"iteration": 2 * value["iteration"], "samples": 2 * value["samples"]}
    value["throughput"] = 2 * value.get("throughput", 0)


def losing(loss: object) -> list[str]:
    return edited(planned_log(), lambda _, said: said.update(loss=loss), {60})


def with_events(place: int, *events: tuple[str, object], instead: int = 0) -> list[str]:
    """A log in which events stand before a line, or instead of some."""
    lines = planned_log()
    moment = 1000 + int(re.search(r'"time_ms": (\d+)', lines[at(lines, 60)])[1])
    new = [event(*one, time_ms=moment + n) for n, one in enumerate(events)]
    return [*lines[:place], *new, *lines[place + instead :]]


START = event("run_start", None)
OF_SIX, LONG, USUAL = planned_log(**SIX), planned_log(iterations=400), planned_log()
CONFIGURED = next(i for i, line in enumerate(USUAL) if '"key": "configuration"' in line)
UNCONFIGURED = without([line for line in OF_SIX if '"configuration"' not in line], 1)
EVERY = '"print_every": 10', '"print_every": 20'
OTHER_EVERY = [line.replace(*EVERY) for line in planned_log(every=10)]
EVALUATION, VGG = (("eval_start", None), ("eval_stop", None)), {"workload": "vgg16"}
ALL = partial(case, wide=True)
STARTS = "the log says that a run starts before iteration "


@cases(
    ALL("counted twice", edited(OF_SIX, counted_twice), "iteration 8 is printed; allowed by the"),
    ALL("no 1", without(OF_SIX, 1), "iteration 1 is not printed; allowed by the log: "),
    case("no 4", without(OF_SIX, 4), "iteration 4 is not printed", ends=(2, 5)),
    case("no 6", without(OF_SIX, 6), "the log says that the run ended at iteration 5", ends=(2, 5)),
    case("7", inserted(OF_SIX, 7, 6), "iteration 7 is printed", ends=ENDS),
    case("3 again", inserted(OF_SIX, 3, 4), "iteration 3 is printed after 4", ends=ENDS),
    case("each 20", OTHER_EVERY, "iteration 10 is printed; allowed by the log: each 20 of 120"),
    case("no 300", without(LONG, 300), "iteration 300 is not printed"),
    case("most lines are skipped", planned_log(iterations=40_000)),
    case(
        "another plan",
        OF_SIX,
        "number of iterations is 6 by the log, 12 by the command line",
        ends=ENDS,
        facts=(("iterations", 12), ("print_every", 1)),
    ),
    # What a log does not say does not hold it.
    case("no plan", UNCONFIGURED, ends=(2, 6)),
    ALL(
        "a start",
        [*OF_SIX[: at(OF_SIX, 4)], START, *OF_SIX[at(OF_SIX, 4) :]],
        f"{STARTS}4; allowed: once, before iteration 1",
    ),
    # A run that broke off before its first line is no fault.
    case("twice", [*OF_SIX[: at(OF_SIX, 1)], *OF_SIX], ends=ENDS),
    *(
        case(f"a loss of {loss}", losing(loss), f"the loss at iteration 60 is {loss}, which no run")
        for loss in (float("nan"), float("-inf"), None, True)
    ),
    case(
        "no configuration",
        with_events(CONFIGURED, ("framework", "torch 2.13.0"), instead=1),
        "the log names its framework, and not its configuration: a line of it is lost",
    ),
    case(
        "an evaluation",
        with_events(at(USUAL, 80), *EVALUATION),
        "the log shows an evaluation before",
    ),
    case("configured anew", with_events(at(USUAL, 80), ("configuration", VGG)), f"{STARTS}80"),
)
def test_a_log_prints_what_its_run_prints(log, how, reason, expected):
    check(measure_one(log, **how), reason, **expected)


# Two clocks


def scaled(factor: float, *clocks: str) -> Callable[[Values, Values], None]:
    """A change of one of the two clocks, or both, and of the speeds that go with it."""

    def change(said: Values, value: Values) -> None:
        if "seconds" in clocks:
            value["seconds"] = 1000 + (value["seconds"] - 1000) * factor
            value["throughput"] = value.get("throughput", 100.0) / factor
        if "time_ms" in clocks:
            said["time_ms"] = round(1000 * BOOTED + (said["time_ms"] - 1000 * BOOTED) * factor)

    return change


def late(milliseconds: int) -> list[str]:
    """Stamps of one line read after its clock, in a window of 160 ms."""
    short = planned_log(rate=10_000.0)
    return edited(short, lambda said, _: said.update(time_ms=said["time_ms"] + milliseconds), {20})


UNSTAMPED = "the log stamps the start of its run, and not all of the lines in the window"
SLOWED = edited(USUAL, scaled(0.1, "seconds"))
BOTH = "seconds", "time_ms"


@cases(
    # As docs/refusals.md promises.
    case("late by 50 ms", late(50)),
    case("late by 51 ms", late(51), "the log's two clocks disagree"),
    case(
        "lacking on a line",
        edited(USUAL, lambda said, _: said.pop("time_ms"), {60}),
        "..some lines in the window lack the second",
    ),
    case(
        "before the start",
        edited(USUAL, scaled(0.1, *BOTH)),
        "..s outside the run, whose start and",
    ),
    case(
        "longer than the run",
        edited(USUAL, scaled(10, *BOTH)),
        "the window takes 163.983 s, the run took 19.13 s by the log",
    ),
    # Else nothing would deny a clock that somebody has slowed down.
    case("no stamp", edited(SLOWED, lambda said, _: said.pop("time_ms")), UNSTAMPED),
    case("a stamp of 0", edited(SLOWED, lambda said, _: said.update(time_ms=0)), UNSTAMPED),
    case(
        "a stamp in words",
        edited(SLOWED, lambda said, _: said.update(time_ms=str(said["time_ms"]))),
        UNSTAMPED,
    ),
)
def test_the_two_clocks_of_a_log_of_ours_agree(log, how, reason, expected):
    check(measure_one(log, **how), reason, **expected)


@pytest.mark.parametrize("factor", [0.95, 2])
@pytest.mark.parametrize(("clock", "true", "other"), [("seconds", 2, 1), ("time_ms", 1, 2)])
def test_clocks_that_disagree_are_refused_with_both_speeds(clock, true, other, factor):
    speed = measure_one(USUAL).throughput
    why = measure_one(edited(USUAL, scaled(factor, clock))).reason
    said = re.match(r"the log's two clocks disagree: (\S+) and (\S+) samples/s, for", why)
    assert float(said[true]) == pytest.approx(speed, rel=0.01)
    assert float(said[other]) == pytest.approx(speed / factor, rel=0.01)


def test_a_run_lies_within_what_its_record_says():
    def by_record(start: float, stop: float, lines: list[str]) -> str:
        span = (BOOTED + start, BOOTED + stop)
        return measure_one(lines, facts=(("run_span", span),)).reason

    first, *_, last = seconds_in(*USUAL)
    took = last - first
    assert by_record(990, last + 5, USUAL) == ""
    short = by_record(1000, 1000 + took / 2, USUAL)
    assert short.startswith(f"the window takes {took:.6g} s, the run took {took / 2:.6g} s by")
    for bounds in ((first + 2, last + 60), (first - 60, last - 2)):
        outside = r"was written (2\.00|1\.99)\d s outside the run, whose start and end the"
        assert re.search(outside, by_record(*bounds, USUAL))
    alone = [re.sub(r'"time_ms": \d+', '"time_ms": 0', line) for line in USUAL]  # one clock
    assert by_record(5000, 5060, alone) == ""
    assert "the run took 60 s by" in by_record(5000, 5060, edited(alone, scaled(10, "seconds")))


# A clock that was set


def moved(seconds: float, lines: range, clock: str = "time_ms") -> list[str]:
    """A planned log, some of whose steps have another time by one of the clocks; so has its end."""

    def change(said: Values, value: Values) -> None:
        if clock == "time_ms":
            said["time_ms"] += round(1000 * seconds)
        else:
            value["seconds"] += seconds
            value.pop("throughput", None)

    log = edited(planned_log(iterations=160), change, {20 * line + 20 for line in lines})
    if clock == "time_ms" and 8 in lines:
        end = re.compile(r'(?<="time_ms": )\d+(?=.*"run_stop")')
        log = [end.sub(lambda found: str(int(found[0]) + round(1000 * seconds)), x) for x in log]
    return log


@pytest.mark.parametrize("seconds", [0.3, -0.5, 3600.0])
def test_a_clock_that_was_set_once_is_not_the_one_that_measures(seconds):
    true = measure_one(planned_log(iterations=160))
    warning = (
        f"clock-set: the wall clock was set by {seconds:+.3f} s between the iterations 60 and 80; "
        "measured by the clock that cannot jump"
    )
    check(true, warnings=())
    check(measure_one(moved(seconds, range(3, 9))), throughput=true.throughput, warnings=(warning,))


@pytest.mark.parametrize(
    ("lines", "clock"),
    [
        (range(5, 6), "time_ms"),  # and set back
        (range(5, 6), "seconds"),
        (range(7, 8), "time_ms"),  # by the last line alone
        (range(1), "seconds"),
    ],
)
def test_a_line_whose_time_is_wrong_is_no_clock_that_was_set(lines, clock):
    found = measure_one(moved(1.0, lines, clock), ends=(20, 120) if 5 in lines else (20, 160))
    assert found.code == "two-clocks"


def standing(seconds: float, rates: bool, **log: float) -> list[str]:
    """A log of one clock that gains so many seconds between two of its lines."""

    def change(_said: Values, value: Values) -> None:
        value["seconds"] += seconds * (value["iteration"] > 80)
        if not rates:
            value.pop("throughput", None)

    return edited(step_log(**log), change)


@pytest.mark.parametrize(
    ("seconds", "rates", "warned"),
    [
        (0.0, False, ""),
        (0.1, False, ""),  # less than the 1 % that a clock may be off
        (1.0, False, "1.31 times the usual: the clock was set, or training stood still"),
        (-1.0, False, "as long as the others, they would make the window 6.7% longer"),
        (62.0, False, "20.4 times the usual: the clock was set, or training stood still"),
        (0.5, True, ""),
        (1.5, True, "1.47 times the usual, though its line prints a speed of 100: the clock was"),
    ],
)
def test_one_interval_that_is_far_from_the_others_is_said(seconds, rates, warned):
    log = {"iterations": 600} if rates else {}
    found = measure_one(standing(seconds, rates, **log), ends=(20, 600) if rates else None)
    check(found)
    said = "".join(found.warnings).partition(": ")[2]
    assert said.startswith("the iterations 80 to 100 take ") if warned else not said
    assert warned in said


@pytest.mark.parametrize(("held", "code"), [(1, ""), (25, "clock"), (60, "clock")])
def test_lines_that_a_buffer_held_back_give_no_number(held, code):
    """gluon-cv's lines of 2 s an iteration, stamped when so many have been written together."""
    log = ["Total batch size is set to 32 on 1 GPUs"]
    for iteration in range(1, 241):
        stamp = datetime(2026, 1, 1) + timedelta(seconds=2 * held * -(-iteration // held))
        log.append(
            f"{stamp},000 - train_net.py[line:175] - INFO: [Epoch 0][Batch {iteration}], "
            "Speed: 0 samples/sec, CrossEntropy=7.0"
        )
    reason = "..when a buffer was written" if code else ""
    check(measure_one(log), reason, code=code, throughput=None if code else 16.0)


@pytest.mark.parametrize(
    ("lost", "warned"), [(range(0), 0), (range(61, 62), 0), (range(60, 500), 1)]
)
def test_a_model_that_has_diverged_is_said(lost, warned):
    log = printed("megatron", ((n, 0.1 * n, 320) for n in range(1, 131)))
    log = [
        re.sub("loss: [0-9.]+", "loss: nan", x) if n in lost else x for n, x in enumerate(log, 1)
    ]
    found = measure_one([re.sub(r"\[.*\]", "", line) for line in log])
    check(found, throughput=320.0)
    said = "not-finite: the loss is not a finite number in 61 of"
    assert [one.startswith(said) for one in found.warnings] == [True] * warned
