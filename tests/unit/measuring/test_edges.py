"""The thresholds, a row each: just inside, a number is given; just outside, it is not."""

from functools import partial

import pytest
from reperf.logs.checks import Refused
from reperf.logs.facts import Facts
from reperf.logs.format import SEEN, Record
from reperf.measuring.counts import check_seen

from tests.helpers.step_logs import BOOTED, stamped, step, step_log
from tests.unit.logs.asking import measure_one, measure_written
from tests.unit.logs.written import STYLES


def ours(took: float, speed: float = 0.0, drift: float = 0.0, span: tuple | None = None) -> str:
    """Why a step log is refused whose window takes so many seconds; "" if it is measured.

    Args:
        took: the seconds.
        speed: how many times as fast the printed speeds are; 0: none are printed.
        drift: how many seconds its second clock counts more.
        span: when its run began and ended, by its record, in seconds of the first clock.
    """
    lines, times = step_log(), [took * n / 100 for n in range(20, 121, 20)]
    printed = speed * 1600 / took if speed else None
    steps = [step(20 + 20 * n, at, 16, printed) for n, at in enumerate(times)]
    if drift or span:
        times[-1] += drift
        steps = [stamped(line, at) for line, at in zip(steps, times, strict=True)]
    known = (("run_span", (BOOTED + span[0], BOOTED + span[1])),) if span else ()
    return measure_one([*lines[:6], *steps, *lines[-2:]], facts=known).reason


def of_style(
    name: str, ends: tuple[int, int], each: float = 0.25, *, pace: float = 1.0, again: int = 0
) -> str:
    """Why a log of a program is refused; "" if it is measured.

    Args:
        name: of its format.
        ends: of the window.
        each: the seconds of an iteration.
        pace: as how many times as long it is printed.
        again: the iteration before which the program starts anew.
    """
    style, lines = STYLES[name], []
    for n in range(style.first, 201, style.every):
        lines += style.head if n == again else ()
        lines.append(style.line(n, n * each, 32 / each / pace))
    facts = (*style.facts, ("accumulation", 1))
    return measure_written(name, [*style.head, *lines], ends=ends, facts=facts).reason


def bars(pace: float, lines: int = 5) -> str:
    """Of a log of which so many lines in the window print a pace, other than they have."""
    return of_style("maskrcnn-benchmark", (20, 20 + 20 * lines), pace=pace)


def tokens(more: float) -> str:
    """Of a log that counts so many times more tokens than its batches hold, in few digits."""
    facts = Facts().add("the log", {"global_batch": 16, "sample_tokens": 1000}.items())
    seen = [Record(end, counts=((SEEN, end * 16_000 * (1 + more)),)) for end in (0, 100)]
    try:
        check_seen(seen, (0, 100), 1600, facts)
    except Refused as refused:
        return str(refused)
    return ""


ANEW = "torchtitan", (20, 120)


@pytest.mark.parametrize(
    ("reason_of", "inside", "outside", "why"),
    [
        (lambda share: ours(16, 1 + share), 0.049, 0.051, "the printed speeds mean"),
        (lambda share: ours(16, 1 - share), 0.049, 0.051, "the printed speeds mean"),
        (lambda drift: ours(1.6, drift=drift), 0.049, 0.051, "the log's two clocks disagree"),
        (lambda drift: ours(16, drift=drift), 0.159, 0.163, "the log's two clocks disagree"),
        (ours, 1.7e-12, 1.5e-12, "implausible throughput"),
        (ours, 1.7e-12, 0.0, "no time passes in the window"),
        (ours, 1.5e12, 1.7e12, "implausible throughput"),
        (lambda late: ours(16, span=(3.2 + late, 60)), 0.9, 1.1, "was written 1.1"),
        (lambda early: ours(16, span=(0, 19.2 - early)), 0.9, 1.1, "was written 1.1"),
        (lambda less: ours(16, span=(3.7, 19.7 - less)), 1.04, 1.06, "the run took 14.94 s"),
        (tokens, 0.0150, 0.0152, "the lines count 1.62e+06 tokens in the window"),
        (tokens, -0.0148, -0.0150, "the lines count 1.58e+06 tokens in the window"),
        (bars, 1.49, 1.51, "by what most of its lines print"),
        (bars, 1 / 1.49, 1 / 1.51, "by what most of its lines print"),
        (lambda lines: bars(9, lines), 2, 3, "by what most of its lines print"),
        (
            partial(of_style, "detectron2", (19, 119)),
            1.0,
            0.99,
            "printed in steps of 1 s, too",
        ),
        (lambda again: of_style(*ANEW, again=again), 20, 30, "was started anew in the window"),
        (lambda again: of_style(*ANEW, again=again), 130, 120, "was started anew in the window"),
    ],
)
def test_a_window_is_measured_up_to_each_threshold_and_refused_beyond_it(
    reason_of, inside, outside, why
):
    assert reason_of(inside) == ""
    assert why in reason_of(outside)
