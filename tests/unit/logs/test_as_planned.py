"""A log of ours prints what its run prints, by its plan, and its two clocks agree."""

import json
import re
from collections.abc import Callable

import pytest
from trainers.contract.steplog import printed_iterations

from tests.helpers.step_logs import BOOTED, event, planned_log, stamped, step
from tests.unit.logs.asking import measure, measure_one, measure_written
from tests.unit.logs.written import STYLES, written

SIX = {"iterations": 6, "every": 1, "rate": 10.0}
ENDS = (1, 6)
Values = dict[str, object]


def at(lines: list[str], iteration: int) -> int:
    """Where the line of an iteration stands."""
    return next(i for i, line in enumerate(lines) if f'"iteration": {iteration},' in line)


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


def test_what_a_run_prints_is_measured():
    assert list(printed_iterations(6, 1)) == [1, 2, 3, 4, 5, 6]
    assert list(printed_iterations(7, 3)) == [3, 6]
    for plan, ends in (({}, None), (SIX, ENDS), ({"iterations": 60, "every": 5}, (20, 60))):
        lines = planned_log(**plan)
        first, last = ends or (20, 120)
        times = [
            float(re.search(r'"seconds": ([\d.]+)', lines[at(lines, one)])[1])
            for one in (first, last)
        ]
        found = measure_one(lines, ends=ends)
        assert found.reason == ""
        assert found.throughput == pytest.approx((last - first) * 16 / (times[1] - times[0]))
        assert found.sources["print_every"] == "the log"


@pytest.mark.parametrize("widest", [False, True])
def test_iterations_that_count_double_are_refused(widest):
    def twice(_said: Values, value: Values) -> None:
        value["iteration"] *= 2
        value["samples"] *= 2
        value["throughput"] = 2 * value.get("throughput", 0)

    found = measure_one(
        edited(planned_log(**SIX), twice), ends=None if widest else (2, 12), widest=widest
    )
    assert found.reason == (
        "iteration 8 is printed; allowed by the log: each 1 of 6 iterations, once"
    )
    assert found.widest is None


@pytest.mark.parametrize(
    ("lost", "reason"),
    [
        (1, "iteration 1 is not printed"),
        (4, "iteration 4 is not printed"),
        (6, "the log says that the run ended at iteration 5"),
    ],
)
def test_an_iteration_that_is_not_printed_is_missed(lost, reason):
    lines = planned_log(**SIX)
    del lines[at(lines, lost)]
    for how in ({"ends": (2, 5)}, {"widest": True}):
        assert measure_one(lines, **how).reason.startswith(reason)


@pytest.mark.parametrize(
    ("iteration", "behind", "reason"),
    [
        (7, 6, "iteration 7 is printed"),
        (0, 2, "iteration 0 is printed"),
        (3, 4, "iteration 3 is printed behind 4"),
        (6, 6, "iteration 6 is printed behind 6"),
        (-1, 5, "iteration -1 is printed"),
    ],
)
def test_an_iteration_that_no_run_prints_is_refused(iteration, behind, reason):
    lines = planned_log(**SIX)
    place = at(lines, behind)
    seconds = float(re.search(r'"seconds": ([\d.]+)', lines[place])[1]) + 0.001
    lines.insert(place + 1, stamped(step(iteration, seconds, 16), seconds))
    found = measure("".join(f"{x}\n" for x in lines).encode(), ends=(1, 5))
    assert {one.throughput for one in found} == {None}
    if len(found) == 1:
        assert found[0].reason.startswith(reason)


def test_a_line_between_two_that_the_plan_names_is_refused():
    lines = planned_log(every=10)
    lines = [line.replace('"print_every": 10', '"print_every": 20') for line in lines]
    assert measure_one(lines).reason.startswith("iteration 10 is printed; allowed by the log: each")


def test_behind_the_window_the_plan_holds_as_well():
    lines = planned_log(iterations=400)
    del lines[at(lines, 300)]
    assert measure_one(lines).reason.startswith("iteration 300 is not printed")
    assert measure_one(planned_log(iterations=40_000)).reason == ""  # most lines are skipped


def test_a_plan_of_another_run_is_refused():
    facts = (("iterations", 12), ("print_every", 1))
    found = measure_one(planned_log(**SIX), ends=ENDS, facts=facts)
    assert found.reason == "number of iterations is 6 by the log, 12 by the command line"


@pytest.mark.parametrize("before", [2, 4, 6])
def test_a_run_that_starts_twice_is_refused(before):
    lines = planned_log(**SIX)
    lines.insert(at(lines, before), event("run_start", None))
    for how in ({"ends": (2, 5)}, {"widest": True}):
        assert measure_one(lines, **how).reason == (
            f"the log says that a run starts before iteration {before}; allowed: once, before "
            "iteration 1"
        )


def test_a_run_that_began_and_broke_off_before_its_first_line_is_no_fault():
    lines = planned_log(**SIX)
    again = [*lines[: at(lines, 1)], *lines]
    assert measure_one(again, ends=ENDS).reason == ""


@pytest.mark.parametrize("loss", [float("nan"), float("inf"), float("-inf"), None, "nan", True])
@pytest.mark.parametrize("iteration", [20, 60, 120, 140])
def test_a_loss_that_no_trainer_goes_on_with_is_refused(loss, iteration):
    lines = edited(planned_log(iterations=160), lambda _, value: value.update(loss=loss), iteration)
    assert measure_one(lines).reason == (
        f"the loss at iteration {iteration} is {loss}, which no run of ours prints"
    )


def scaled(clock: str, factor: float) -> Callable[[Values, Values], None]:
    """A change of one of the two clocks, and of the speeds that go with it."""

    def change(said: Values, value: Values) -> None:
        if clock == "seconds":
            value["seconds"] = 1000 + (value["seconds"] - 1000) * factor
            value["throughput"] = value.get("throughput", 100.0) / factor
        else:
            said["time_ms"] = round(1000 * BOOTED + (said["time_ms"] - 1000 * BOOTED) * factor)

    return change


@pytest.mark.parametrize("factor", [0.01, 0.1, 0.5, 0.95, 1.05, 2, 10])
@pytest.mark.parametrize("clock", ["seconds", "time_ms"])
def test_clocks_that_disagree_are_refused_with_both_speeds(clock, factor):
    lines = planned_log(rate=100.0)
    speed = measure_one(lines).throughput
    reason = measure_one(edited(lines, scaled(clock, factor))).reason
    said = re.match(r"the log's two clocks disagree: (\S+) and (\S+) samples/s, for", reason)
    assert said, reason
    true, other = map(float, said.groups() if clock == "time_ms" else said.groups()[::-1])
    assert true == pytest.approx(speed, rel=0.01)
    assert other == pytest.approx(speed / factor, rel=0.01)


def test_clocks_may_be_read_one_after_the_other():
    late = edited(planned_log(), lambda said, _: said.update(time_ms=said["time_ms"] + 50), 20)
    assert measure_one(late).reason == ""
    short = planned_log(rate=10_000.0)  # a window of 160 ms
    assert measure_one(edited(short, scaled("seconds", 1.1))).reason == ""
    assert "clocks disagree" in measure_one(edited(short, scaled("seconds", 3.0))).reason


def test_a_clock_that_not_all_lines_tell_is_refused():
    lines = edited(planned_log(), lambda said, _: said.pop("time_ms"), 60)
    assert "only some of the lines" in measure_one(lines).reason


@pytest.mark.parametrize("name", ["oneflow-models-wide-deep", "paddle2-bert"])
def test_printed_means_must_fit_the_stamps(name):
    lines = written(name)
    true = measure_written(name, lines)
    assert true.reason == ""
    number = r"(?<=latency\(ms\): )[\d.]+|(?<=avg_batch_cost: )[\d.]+"
    slower = [re.sub(number, lambda found: f"{2 * float(found[0]):.6f}", one) for one in lines]
    reason = measure_written(name, slower).reason
    speed = true.throughput
    assert f"two clocks disagree: {speed:.6g} and {speed / 2:.6g} samples/s, for" in reason


def test_a_mean_does_not_stand_for_a_line_that_is_lost():
    name = "oneflow-models-wide-deep"
    lines = [line for line in written(name) if " iter: 60/" not in line]
    assert measure_written(name, lines).reason == ""
    assert STYLES[name].every == 20


def span(start: float, stop: float) -> tuple[tuple[str, object], ...]:
    """What a record says of when its run started and ended, in seconds of the step clock."""
    return (("run_span", (BOOTED + start, BOOTED + stop)),)


def test_a_run_lies_within_what_its_record_says():
    lines = planned_log()
    stamps = [float(one) for one in re.findall(r'"seconds": ([\d.]+)', "\n".join(lines))]
    assert measure_one(lines, facts=span(990, stamps[-1] + 5)).reason == ""
    took = stamps[-1] - stamps[0]
    short = measure_one(lines, facts=span(1000, 1000 + took / 2)).reason
    assert short.startswith(f"the window takes {took:.6g} s, the run took {took / 2:.6g} s by")
    for bounds in ((stamps[0] + 2, stamps[-1] + 60), (stamps[0] - 60, stamps[-1] - 2)):
        reason = measure_one(lines, facts=span(*bounds)).reason
        assert re.search(
            r"was written (2\.00|1\.99)\d s outside the run, whose start and end the", reason
        )
    alone = [re.sub(r'"time_ms": \d+', '"time_ms": 0', line) for line in lines]  # one clock
    assert measure_one(alone, facts=span(5000, 5060)).reason == ""
    slow = edited(alone, scaled("seconds", 10))
    assert "the run took 60 s by" in measure_one(slow, facts=span(5000, 5060)).reason


@pytest.mark.parametrize(
    ("factor", "told"),
    [
        (0.1, "s outside the run, whose start and end the log says"),
        (10, "the window takes 163.983 s, the run took 19.13 s by the log"),
    ],
)
def test_both_clocks_lie_between_the_lines_that_start_and_stop_the_run(factor, told):
    def both(said: Values, value: Values) -> None:
        value["seconds"] *= factor
        said["time_ms"] = round(said["time_ms"] * factor)
        value["throughput"] = value.get("throughput", 100.0) / factor

    reason = measure_one(edited(planned_log(), both)).reason
    assert reason.endswith(told)


@pytest.mark.parametrize(
    "unstamped",
    [
        lambda said, _: said.pop("time_ms"),
        lambda said, _: said.update(time_ms=0),
        lambda said, _: said.update(time_ms=str(said["time_ms"])),
    ],
)
def test_a_log_that_stamps_its_start_stamps_its_iterations(unstamped):
    """Else nothing would deny a clock that somebody has slowed down."""
    found = measure_one(edited(edited(planned_log(), scaled("seconds", 0.1)), unstamped))
    assert found.reason == (
        "the log stamps the start of its run, and not all of the lines in the window"
    )


def replaced(key: str, *events: tuple[str, object]) -> list[str]:
    """A log in which other events stand where those with a key stood, or were to stand."""
    lines = planned_log()
    place = next((i for i, line in enumerate(lines) if f'"key": "{key}"' in line), len(lines) - 1)
    return [*lines[:place], *(event(*one) for one in events), *lines[place + 1 :]]


@pytest.mark.parametrize(
    ("lines", "why"),
    [
        (
            edited(planned_log(), lambda said, _: said.update(metadata={"samples_count": 7})),
            "iteration 20 counts 320 samples, and 7 in the same line's metadata",
        ),
        (
            [*planned_log()[:-2], ":::OOM rank 1: out of memory", *planned_log()[-2:]],
            "the log says that the run ended well, and before that: rank 1: out of memory",
        ),
        (
            replaced("configuration", ("framework", "torch 2.13.0")),
            "the log names its framework, and not its configuration: a line of it is lost",
        ),
        (
            [*planned_log()[:-1], event("weight_digests", ["a", "b", "c"]), planned_log()[-1]],
            "world size is 2 by the log, 3 by the log",
        ),
    ],
)
def test_what_a_log_says_of_itself_agrees(lines, why):
    assert measure_one(lines).reason.startswith(why)


@pytest.mark.parametrize(
    ("between", "why"),
    [
        ([("eval_start", None), ("eval_stop", None)], "the log tells of an evaluation before"),
        ([("configuration", {"workload": "vgg16"})], "the log says that a run starts before"),
    ],
)
def test_nothing_but_iterations_lies_between_those_of_a_run(between, why):
    lines = planned_log()
    moment = 1000 + int(re.search(r'"time_ms": (\d+)', lines[at(lines, 60)])[1])
    new = [event(*one, time_ms=moment + n) for n, one in enumerate(between)]
    lines[at(lines, 80) : at(lines, 80)] = new
    assert measure_one(lines).reason.startswith(f"{why} iteration 80")


def test_samples_hold_no_more_tokens_than_their_shape_has_places_for():
    def counting(each: int) -> list[str]:
        lines = edited(planned_log(), lambda _, v: v.update(tokens=each * v["samples"]))
        plan = {"shape": {"sequence_length": 128}, "iterations": 120, "print_every": 20}
        return [event("configuration", plan) if '"configuration"' in one else one for one in lines]

    assert measure_one(counting(128)).reason == ""
    assert measure_one(counting(129)).reason == (
        "the log counts 206400 tokens in the window; allowed in 1600 samples of 128: 204800"
    )


def test_a_log_that_does_not_say_its_plan_is_not_held_to_one():
    lines = [line for line in planned_log(**SIX) if '"configuration"' not in line]
    del lines[at(lines, 1)]
    assert measure_one(lines, ends=(2, 6)).reason == ""
