"""What a row of summary.csv says that people must know before they read its number."""

import pytest
from reperf.measuring.marks import is_doubtful, marks_of
from reperf.tables import SUMMARY

NAN = float("nan")
ROW = {name: "" if kind is str else NAN for name, kind in SUMMARY.items()}
ROW |= {"throughput_median": 100.0, "num_nodes": 1, "hosts": "a"}


@pytest.mark.parametrize(
    ("said", "marks"),
    [
        ({"load": 0.05}, []),
        ({"load": 0.051}, ["machine busy"]),
        ({"load": 0.25}, ["machine busy"]),
        ({"load": 0.251}, ["not usable: 25.1 % other work"]),
        ({"gpu_processes": 1}, ["machine busy"]),
        ({"throttled": 0.01}, []),
        ({"throttled": 0.12}, ["throttled 12.0 % of its time"]),
        ({"mhz_min": 1900.0, "mhz_max": 1980.0}, []),
        ({"mhz_min": 1410.0, "mhz_max": 1980.0}, ["clocks differ: 1410 to 1980 MHz"]),
        ({"speedup_low": 1.0, "speedup_high": 1.26}, ["scattered"]),
        ({"waited": 0.051}, ["bound by loader"]),
        ({"hosts": "a b", "num_nodes": 2}, []),
        ({"hosts": "a b"}, ["on several hosts: 2 hosts"]),
        (
            {"warnings": "gap 2.9%, not-finite, gap 12.0%, widest"},
            ["a gap in the window: one interval moves it by 12 %", "loss not finite"],
        ),
        ({"warnings": "implied-length"}, ["the batch as given"]),
        ({"warnings": "not-one-thing, trained-again"}, ["not one thing", "trained again"]),
        ({"unconfirmed": "workload"}, ["unconfirmed: workload as the configuration says"]),
    ],
)
def test_a_row_has_the_marks_that_it_earns(said, marks):
    assert marks_of(ROW | said) == marks
    assert marks_of(ROW | said | {"throughput_median": NAN}) == []
    assert [*map(is_doubtful, marks)] == [not {"hosts", "unconfirmed"} & {*said}] * len(marks)


def test_marks_of_runs_are_those_that_the_table_has_and_come_first():
    told = "on slow n3; starts elsewhere; scattered; one after the other"
    marks = marks_of(ROW | {"load": 0.1, "marks": told})
    assert marks == ["on slow n3", "starts elsewhere", "one after the other", "machine busy"]
