"""What else a log says bounds its times: printed paces, a second start, the labels of ranks."""

import re
import sys

import pytest
from reperf.logs.formats import formats

from tests.unit.logs.asking import REAL, measure, measure_written
from tests.unit.logs.written import STYLES, uneven, written

PACE = "by what most of its lines print"


@pytest.mark.parametrize("times", [2, 10])
def test_bars_whose_counts_are_renumbered_are_denied_by_the_pace_that_they_print(times):
    log = (REAL / "ran_lightning.log").read_bytes()

    def more(found: re.Match[bytes]) -> bytes:
        return b"%d/%d [" % tuple(int(count) * times for count in found.groups())

    how = {"facts": (("global_batch", 32),), "widest": True}
    assert measure(log, **how)[0].throughput
    denied = measure(re.sub(rb"(\d+)/(\d+) \[", more, log), **how)[0]
    assert denied.throughput is None
    assert PACE in denied.reason


def times(factor: float):
    return lambda number: f"{float(number[0]) * factor:.3f}"


@pytest.mark.parametrize(
    ("name", "printed", "into", "reason"),
    [
        ("openmmlab", r"time: 0\.250", "time: 0.200", "the log's two clocks disagree: "),
        ("maskrcnn-benchmark", r"(?<= time: )[\d.]+", "0.01", PACE),
        ("detectron2", r"(?<= time: )[\d.]+", "0.01", PACE),
        ("ngc-pytorch-gnn", r"(?<=_time : )[\d.]+", times(1.1), PACE),
        ("ngc-pytorch-tacotron2", r"(?<=_time : )[\d.]+", times(1.1), PACE),
        ("ngc-pytorch-gnn", r"(?<=_time : )[\d.]+", times(0.1), ""),  # they wait for their input
        ("ngc-pytorch-tacotron2", r"(?<=_time : )[\d.]+", times(0.1), ""),
    ],
)
def test_an_iteration_takes_about_as_long_as_the_lines_print(name, printed, into, reason):
    lines = written(name)
    true = measure_written(name, lines)
    changed = [re.sub(printed, into, line) for line in lines]
    assert changed != lines
    found = measure_written(name, changed)
    assert reason in found.reason
    assert found.throughput == (None if reason else true.throughput)
    assert true.throughput


@pytest.mark.parametrize(
    "name", sorted(one.name for one in formats().values() if "{TOTAL}" in one.pattern)
)
def test_no_iteration_is_beyond_the_total_that_its_line_prints(name):
    lines = written(name)
    assert measure_written(name, lines).throughput
    matches = formats()[name].line.finditer("\n".join(lines).encode())
    [total] = {match["total"].decode() for match in matches if match["total"]}
    fewer = [re.sub(rf"(?<=/)( *){total}\b", r"\g<1>100", line) for line in lines]
    reason = measure_written(name, fewer).reason
    assert re.fullmatch(r"iteration 1\d\d is printed, of 100 in all", reason)


@pytest.mark.parametrize(
    ("name", "picked", "why"),
    [
        ("torchtitan", r"step: \d*[02468]0 ", "the printed speeds mean 64 samples a step"),
        ("huggingface", r"\d*[02468]/1000", "a progress bar shows 15 of 1000 as 3 %"),
        ("lightning", r"\d*[02468]/1000", "a progress bar shows 15 of 1000 as 3 %"),
    ],
)
def test_picked_lines_numbered_anew_are_denied_by_what_they_print_beside(name, picked, why):
    style, pattern = STYLES[name], formats()[name].line
    lines = uneven(name, 20 * style.every * 20)
    how = {"facts": (*style.facts, ("accumulation", 1)), "widest": True}
    assert measure_written(name, lines, **how).throughput
    numbers = iter(range(style.first, sys.maxsize, style.every))
    left = []
    for line in lines:
        found = pattern.search(f"{line}\n".encode())
        start, stop = found.span("iteration") if found else (-1, -1)
        if start < 0:
            left.append(line)
        elif re.search(picked, line):
            left.append(f"{line[:start]}{next(numbers):{stop - start}d}{line[stop:]}")
    assert 100 < len(left) < len(lines)
    found = measure_written(name, left, **how)
    assert found.throughput is None
    assert why in found.reason


def test_the_widest_window_does_not_reach_across_a_start_of_the_program():
    """Whose line belongs to the iteration behind it; test_edges.py has what is refused."""
    lines = written("torchtitan")
    at = next(at for at, line in enumerate(lines) if "step: 60 " in line)
    again = [*lines[:at], *STYLES["torchtitan"].head, *lines[at:]]
    found = measure_written("torchtitan", again, facts=(("accumulation", 1),), widest=True)
    assert (found.first, found.last) == (60, 200)


def test_a_line_without_a_label_is_no_line_of_the_rank_that_has_one():
    lines = written("ngc-pytorch-gnmt")
    quoted = [f"eval | {line}" for line in lines if "TRAIN [" in line]
    found = measure_written("ngc-pytorch-gnmt", [*lines[:50], *quoted, *lines[50:]])
    assert "carries no rank's label, and lines before it do" in found.reason
