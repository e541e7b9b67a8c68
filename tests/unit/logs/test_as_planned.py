"""A log of ours prints what its run prints, by its plan, and its two clocks agree."""

import json
import re
from collections.abc import Callable

import pytest
from trainers.contract.steplog import printed_iterations

from tests.helpers.step_logs import BOOTED, event, planned_log, stamped, step
from tests.unit.logs.asking import measure_one, measure_written
from tests.unit.logs.written import written

SIX = {"iterations": 6, "every": 1, "rate": 10.0}
ENDS = (1, 6)
Values = dict[str, object]


def at(lines: list[str], iteration: int) -> int:
    """Where the line of an iteration stands."""
    return next(i for i, line in enumerate(lines) if f'"iteration": {iteration},' in line)


def seconds_in(*lines: str) -> list[float]:
    return [float(one) for one in re.findall(r'"seconds": ([\d.]+)', "\n".join(lines))]


def edited(
    lines: list[str], change: Callable[[Values, Values], object], only: int | None = None
) -> list[str]:
    """A log whose steps are changed.

    Args:
        lines: of the log.
        change: what happens to the object of a step, and to its value.
        only: the iteration whose line changes; None: all.
    """

    def new(line: str) -> str:
        if '"tracked_stats"' not in line or (only and f'"iteration": {only},' not in line):
            return line
        said = json.loads(line.partition(" ")[2])
        change(said, said["value"])
        return f":::MLLOG {json.dumps(said)}"

    return list(map(new, lines))


def reason(lines: list[str], **how: object) -> str:
    return measure_one(lines, **how).reason


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


LOSS = "the loss at iteration 60 is {}, which no run of ours prints"
START = event("run_start", None)
OF_SIX, LONG = planned_log(**SIX), planned_log(iterations=400)


@pytest.mark.parametrize(
    ("lines", "how", "why"),
    [
        (edited(OF_SIX, counted_twice), {"widest": True}, "iteration 8 is printed; allowed by the"),
        (without(OF_SIX, 1), {"widest": True}, "iteration 1 is not printed; allowed by the log: "),
        (without(OF_SIX, 4), {"ends": (2, 5)}, "iteration 4 is not printed"),
        (without(OF_SIX, 6), {"ends": (2, 5)}, "the log says that the run ended at iteration 5"),
        (inserted(OF_SIX, 7, 6), {"ends": ENDS}, "iteration 7 is printed"),
        (inserted(OF_SIX, 3, 4), {"ends": ENDS}, "iteration 3 is printed after 4"),
        (
            [
                line.replace('"print_every": 10', '"print_every": 20')
                for line in planned_log(every=10)
            ],
            {},
            "iteration 10 is printed; allowed by the log: each 20 of 120 iterations, once",
        ),
        (without(LONG, 300), {}, "iteration 300 is not printed"),
        (planned_log(iterations=40_000), {}, ""),  # most lines are skipped
        (
            OF_SIX,
            {"ends": ENDS, "facts": (("iterations", 12), ("print_every", 1))},
            "number of iterations is 6 by the log, 12 by the command line",
        ),
        # What a log does not say does not hold it.
        (without([x for x in OF_SIX if '"configuration"' not in x], 1), {"ends": (2, 6)}, ""),
        (
            [*OF_SIX[: at(OF_SIX, 4)], START, *OF_SIX[at(OF_SIX, 4) :]],
            {"widest": True},
            "the log says that a run starts before iteration 4; allowed: once, before iteration 1",
        ),
        # A run that broke off before its first line is no fault.
        ([*OF_SIX[: at(OF_SIX, 1)], *OF_SIX], {"ends": ENDS}, ""),
        *(
            (edited(planned_log(), lambda _, said, loss=loss: said.update(loss=loss), 60), {}, why)
            for loss in (float("nan"), float("-inf"), None, True)
            for why in [LOSS.format(loss)]
        ),
    ],
)
def test_a_log_prints_what_its_run_prints(lines, how, why):
    found = reason(lines, **how)
    assert found.startswith(why)
    assert bool(found) == bool(why)


def scaled(factor: float, *clocks: str) -> Callable[[Values, Values], None]:
    """A change of one of the two clocks, or both, and of the speeds that go with it."""

    def change(said: Values, value: Values) -> None:
        if "seconds" in clocks:
            value["seconds"] = 1000 + (value["seconds"] - 1000) * factor
            value["throughput"] = value.get("throughput", 100.0) / factor
        if "time_ms" in clocks:
            said["time_ms"] = round(1000 * BOOTED + (said["time_ms"] - 1000 * BOOTED) * factor)

    return change


class TestTheTwoClocks:
    @pytest.mark.parametrize("factor", [0.95, 2])
    @pytest.mark.parametrize(("clock", "true", "other"), [("seconds", 2, 1), ("time_ms", 1, 2)])
    def test_that_disagree_are_refused_with_both_speeds(self, clock, true, other, factor):
        lines = planned_log(rate=100.0)
        speed = measure_one(lines).throughput
        why = reason(edited(lines, scaled(factor, clock)))
        said = re.match(r"the log's two clocks disagree: (\S+) and (\S+) samples/s, for", why)
        assert float(said[true]) == pytest.approx(speed, rel=0.01)
        assert float(said[other]) == pytest.approx(speed / factor, rel=0.01)

    def test_may_be_read_one_after_the_other(self):
        """Up to 50 ms, as docs/refusals.md promises, in a window of 160 ms."""
        short = planned_log(rate=10_000.0)

        def late(milliseconds: int) -> str:
            def change(said: Values, _: Values) -> None:
                said["time_ms"] += milliseconds

            return reason(edited(short, change, 20))

        assert late(50) == ""
        assert "clocks disagree" in late(51)

    def test_are_told_by_all_lines(self):
        lines = edited(planned_log(), lambda said, _: said.pop("time_ms"), 60)
        assert "some lines in the window lack the second" in reason(lines)

    @pytest.mark.parametrize(
        ("name", "printed"),
        [
            ("oneflow-models-wide-deep", r"(?<=latency\(ms\): )[\d.]+"),
            ("paddle2-bert", r"(?<=avg_batch_cost: )[\d.]+"),
        ],
    )
    def test_are_stamps_and_printed_means_in_other_logs(self, name, printed):
        lines = written(name)
        speed = measure_written(name, lines).throughput
        slower = [re.sub(printed, lambda one: f"{2 * float(one[0]):.6f}", line) for line in lines]
        why = f"two clocks disagree: {speed:.6g} and {speed / 2:.6g} samples/s, for"
        assert why in measure_written(name, slower).reason

    @pytest.mark.parametrize(
        ("factor", "told"),
        [
            (0.1, "s outside the run, whose start and end the log says"),
            (10, "the window takes 163.983 s, the run took 19.13 s by the log"),
        ],
    )
    def test_lie_between_the_lines_that_start_and_stop_the_run(self, factor, told):
        both = scaled(factor, "seconds", "time_ms")
        assert reason(edited(planned_log(), both)).endswith(told)

    @pytest.mark.parametrize(
        "unstamped",
        [
            lambda said, _: said.pop("time_ms"),
            lambda said, _: said.update(time_ms=0),
            lambda said, _: said.update(time_ms=str(said["time_ms"])),
        ],
    )
    def test_stamp_the_iterations_of_a_log_that_stamps_its_start(self, unstamped):
        """Else nothing would deny a clock that somebody has slowed down."""
        lines = edited(edited(planned_log(), scaled(0.1, "seconds")), unstamped)
        assert reason(lines) == (
            "the log stamps the start of its run, and not all of the lines in the window"
        )


def test_a_mean_does_not_stand_for_a_line_that_is_lost():
    """Of twenty iterations."""
    name = "oneflow-models-wide-deep"
    lines = [line for line in written(name) if " iter: 60/" not in line]
    assert measure_written(name, lines).reason == ""


def test_a_run_lies_within_what_its_record_says():
    def by_record(start: float, stop: float, lines: list[str]) -> str:
        span = (BOOTED + start, BOOTED + stop)
        return reason(lines, facts=(("run_span", span),))

    lines = planned_log()
    first, *_, last = seconds_in(*lines)
    took = last - first
    assert by_record(990, last + 5, lines) == ""
    short = by_record(1000, 1000 + took / 2, lines)
    assert short.startswith(f"the window takes {took:.6g} s, the run took {took / 2:.6g} s by")
    for bounds in ((first + 2, last + 60), (first - 60, last - 2)):
        outside = r"was written (2\.00|1\.99)\d s outside the run, whose start and end the"
        assert re.search(outside, by_record(*bounds, lines))
    alone = [re.sub(r'"time_ms": \d+', '"time_ms": 0', line) for line in lines]  # one clock
    assert by_record(5000, 5060, alone) == ""
    slow = edited(alone, scaled(10, "seconds"))
    assert "the run took 60 s by" in by_record(5000, 5060, slow)


def with_events(place: int, *events: tuple[str, object], instead: int = 0) -> list[str]:
    """A log in which events stand before a line, or instead of some."""
    lines = planned_log()
    moment = 1000 + int(re.search(r'"time_ms": (\d+)', lines[at(lines, 60)])[1])
    new = [event(*one, time_ms=moment + n) for n, one in enumerate(events)]
    return [*lines[:place], *new, *lines[place + instead :]]


def placed(key: str) -> int:
    return next(i for i, line in enumerate(planned_log()) if f'"key": "{key}"' in line)


@pytest.mark.parametrize(
    ("lines", "why"),
    [
        (
            with_events(placed("configuration"), ("framework", "torch 2.13.0"), instead=1),
            "the log names its framework, and not its configuration: a line of it is lost",
        ),
        (
            with_events(at(planned_log(), 80), ("eval_start", None), ("eval_stop", None)),
            "the log shows an evaluation before iteration 80",
        ),
        (
            with_events(at(planned_log(), 80), ("configuration", {"workload": "vgg16"})),
            "the log says that a run starts before iteration 80",
        ),
    ],
    ids=["configuration", "evaluation", "second start"],
)
def test_what_a_log_says_of_itself_agrees(lines, why):
    assert reason(lines).startswith(why)
