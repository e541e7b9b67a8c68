"""The tables: equal bytes for equal content, and cells that say what became of their runs."""

from fractions import Fraction
from math import prod
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from reperf.config import Cell, topology_shape
from reperf.errors import ReperfError
from reperf.measuring.marks import is_doubtful, marks_of
from reperf.measuring.summary import summarise
from reperf.systems.workloads import load_workloads, written_shape
from reperf.tables import (
    MEASUREMENTS,
    SUMMARY,
    join_tables,
    read_measurements,
    read_summary,
    write_table,
)

from tests.helpers.report_tables import ROW
from tests.helpers.runs import RUN


def row(throughput: float | None, topology: str = "1n1g", **more: object) -> dict:
    """A row of measurements.csv: of a run that failed, if there is no throughput."""
    cell = RUN.model_copy(update={"topology": topology}).identity
    status = "ok" if throughput else "failed"
    return ROW | cell | {"status": status, "throughput": throughput, "repeat": 1} | more


def written(folder: Path, rows: list[dict], columns: list[str] = MEASUREMENTS) -> Path:
    write_table(folder / "table.csv", rows, columns)
    return folder / "table.csv"


def summary(folder: Path, rows: list[dict], cells: tuple[Cell, ...] = (), **asked: str | None):
    cells = summarise(read_measurements(written(folder, rows)), cells, **asked)
    return read_summary(written(folder, cells, SUMMARY))


def test_bytes_are_fixed_and_harmless_text_stands_as_it_is(tmp_path):
    ordinary = "rank 3: it's -9, 1 + 1 = 2 @ 5 % in C:\\logs, \u00fcber \u6570\u636e"
    rows = [row(0.1 + 0.2), row(384.0), row(-1.5, reason=ordinary)]
    text = written(tmp_path, rows, ["throughput", "unit", "reason"]).read_text(encoding="utf-8")
    assert text == (
        f"throughput,unit,reason\n0.30000000000000004,images/s,\n384,images/s,\n"
        f'-1.5,images/s,"{ordinary}"\n'
    )


ODD = st.sampled_from("\x00\t\n\r\x1b\x85\u2028\u202e\ufeff\udcff\U000e0001'=+-@\\x1b\\n\\,\"")
ROWS = st.tuples(
    st.floats(min_value=1e-9, max_value=1e12), st.text(st.characters(exclude_categories=()) | ODD)
)


@given(rows=st.lists(ROWS, max_size=20))
@example(rows=[(1.0, "a\rforged,row"), (1.0, "'=1"), (1.0, r"C:\new\x1b")])
@settings(max_examples=40)
def test_numbers_and_reasons_are_read_back_exactly_and_each_stays_in_its_line(
    tmp_path_factory, rows
):
    folder = tmp_path_factory.mktemp("table")
    path = written(folder, [row(number, reason=reason) for number, reason in rows])
    assert len(path.read_text(encoding="utf-8").splitlines()) == 1 + len(rows)
    table = read_measurements(path)
    assert [*zip(table["throughput"], table["reason"], strict=True)] == rows


def test_tables_are_joined_in_order_and_what_is_none_is_one_line(tmp_path):
    for name in ("b", "a"):
        write_table(tmp_path / name, [row(1.5, suite=name)], MEASUREMENTS)
    join_tables([tmp_path / "b", tmp_path / "a"], tmp_path / "all", MEASUREMENTS)
    assert list(read_measurements(tmp_path / "all")["suite"]) == ["b", "a"]
    (tmp_path / "table.csv").write_text("suite,system\n1,2\n")
    with pytest.raises(ReperfError, match=r"table.csv: column workload is missing"):
        read_summary(tmp_path / "table.csv")
    odd = written(tmp_path, [row(1.0, repeat="two")])
    with pytest.raises(ReperfError, match=r"line 2: repeat is 'two'; allowed: a number"):
        read_measurements(odd)


WORKLOADS = load_workloads()
TRANSFORMER = WORKLOADS["transformer"]
SMALL = WORKLOADS["resnet50"].flops_at({"image_size": 64})
OF_RECORD = {"hosts": "a b", "commit": "c0ffee", "key": "1:ab x=1", "peak_memory": 7}
OF_RECORD |= {"first": 20, "last": 120, "seconds": 16.0, "global_batch": 16, "joules": 3200.0}
OF_OTHER = OF_RECORD | {"hosts": "b c", "peak_memory": 9, "estimated_memory": 8}
OF_OTHER |= {"matrix_rate": 1e12, "data_sheet_rate": 2e12, "load_during": 0.01}
ONE = row(100.0, "1n2g", **OF_RECORD | {"date": "2026-01-02", "load_before": 0.5})
OTHER = row(100.0, "1n2g", **OF_OTHER | {"date": "2026-01-01"})
AT_224 = OTHER | {"shape": "image_size=224"}
# Of a batch's places the log counts those that were computed.
PLACES = OTHER | {"workload": "transformer", "shape": written_shape(TRANSFORMER.default_shape)}
PLACES |= {"unit": "tokens/s", "also_throughput": 96.0, "also_unit": "places/s"}
# Rank 0 has made 120 of the 200 iterations of trainers that keep their own time.
TOGETHER = {"method": "together", "first": 20, "last": 140, "seconds": 16.0, "global_batch": 8}


def bad(*statuses: str) -> list[dict]:
    """Runs that ended so; each has a reason with its number."""
    reasons = ["" if status == "ok" else f"why {n}" for n, status in enumerate(statuses, 1)]
    return [
        row(1.0 if status == "ok" else None, status=status, reason=reason)
        for status, reason in zip(statuses, reasons, strict=True)
    ]


@pytest.mark.parametrize(
    ("runs", "columns"),
    [
        # The median of the repeats; one run has no spread.
        (
            [row(value) for value in (3.0, 1.0, 2.0, 5.0, 4.0, 7.0, 6.0)],
            {"status": "ok", "n": 7, "throughput_median": 4.0, "throughput_min": 1.0}
            | {"throughput_max": 7.0, "throughput_iqr": 3.0, "ci_low": 1.0, "ci_high": 7.0}
            | {"ci_level": 0.984375, "unit": "images/s", "method": "window"},
        ),
        ([row(5.0), row(None)], {"n": 1, "throughput_min": 5.0, "throughput_iqr": None}),
        ([row(None)], {"n": 0, "throughput_median": None}),
        *(
            ([row(100.0, waited=one) for one in waited], {"waited": of_the_cell})
            for waited, of_the_cell in (
                ((0.1, 0.3, 0.8), 0.3),
                ((0.1, None, 0.3), 0.2),
                ((None, None), None),
                ((0.0,), 0.0),
            )
        ),
        # The reason is that of most of the bad runs; of a tie, the first.
        (bad("ok", "ok"), {"status": "ok", "reason": ""}),
        (bad("oom", "failed", "failed"), {"status": "failed", "reason": "2 of 3 repeats: why 2"}),
        (
            bad("ok", "oom", "failed", "failed"),
            {"status": "partial", "reason": "3 of 4 repeats not measured; failed: why 3"},
        ),
        (bad("oom", "failed"), {"status": "oom", "reason": "1 of 2 repeats: why 1"}),
        (bad("oom", "oom"), {"status": "oom", "reason": "why 1"}),
        # Records say where a cell was measured, and what it took.
        (
            [ONE, OTHER],
            {"hosts": "a b c", "date": "2026-01-01", "commit": "c0ffee", "key": "1:ab x=1"}
            | {"load": 0.5, "peak_memory": 9, "per_device": 50.0, "step_ms": 160.0}
            | {"joules_per_sample": 2.0, "estimated_memory": 8},
        ),
        ([ONE, OTHER | {"key": "1:cd x=2"}], {"key": ""}),
        # 16 samples in 0.16 s on 2 devices: 50 a second on each, at what the shape makes one cost.
        ([ONE, OTHER], {"flop_utilisation": pytest.approx(50 * SMALL / 1e12)}),
        (
            [AT_224],
            {"flop_utilisation": pytest.approx(50 * 24299077632 / 1e12)}
            | {"data_sheet_utilisation": pytest.approx(50 * 24299077632 / 2e12)},
        ),
        (
            [AT_224 | {"precision": "fp8"}],
            {"flop_utilisation": None, "data_sheet_utilisation": None},
        ),
        ([PLACES], {"flop_utilisation": pytest.approx(48 * TRANSFORMER.flops.sample / 1e12)}),
        ([row(100.0, "1n2g", samples=1600, **TOGETHER)], {"step_ms": 160.0}),
    ],
)
def test_a_cell_is_what_its_runs_are_together(tmp_path, runs, columns):
    [cell] = summary(tmp_path, runs).to_dict("records")
    assert {name: None if pd.isna(cell[name]) else cell[name] for name in columns} == columns


@pytest.mark.parametrize(
    ("base", "others", "speedups"),
    [
        ((90.0, 100.0, 125.0), (150.0, 200.0, 225.0), (2.0, 1.2, 2.5)),
        ((100.0, 100.0), (190.0, 190.0), (1.9, 1.9, 1.9)),
        # Both take two runs.
        *(((100.0,) * n, (190.0,) * m, (1.9, 0, 0)) for n, m in ((1, 2), (2, 1), (1, 1))),
    ],
)
def test_repeats_that_scatter_give_a_range_of_speedups(tmp_path, base, others, speedups):
    rows = [row(value) for value in base] + [row(value, "1n2g") for value in others]
    table = summary(tmp_path, rows)[["speedup", "speedup_low", "speedup_high"]].fillna(0)
    assert table.to_numpy().tolist() == [[1.0, 0.0, 0.0], [*speedups]]  # of itself, none


@pytest.mark.parametrize(
    ("medians", "named", "baseline"),
    [
        ({"1n1g": 100.0, "1n2g": 190.0, "2n2g": 350.0, "1n8g": None}, None, "1n1g"),
        ({"2n8g": 1512.34, "1n8g": 811.7, "1n4g": 423.9}, None, "1n4g"),
        # Of equally many devices, those on fewer nodes come first.
        ({"4n1g": 370.0, "2n2g": 381.0, "1n4g": 397.0}, None, "1n4g"),
        ({"4n1g": 370.0, "1n8g": 762.0, "2n2g": 381.0}, None, "2n2g"),
        ({"1n1g": 100.0, "2n2g": 381.0, "2n8g": 1512.0}, "2n2g", "2n2g"),
        # If the baseline has no number, no larger topology takes its place.
        ({"1n8g": 100.0, "2n8g": 150.0, "1n1g": None}, None, ""),
        ({"1n1g": 100.0, "2n2g": None, "2n8g": 1512.0}, "2n2g", ""),
        ({"1n1g": 100.0, "1n2g": 190.0}, "2n8g", ""),
    ],
)
def test_speedup_is_against_the_named_or_the_smallest_topology(tmp_path, medians, named, baseline):
    rows = [row(median, topology) for topology, median in medians.items()]
    # A second series is none of the first one's business.
    rows.insert(1, row(5.0, "1n2g", variant="compile"))
    table = summary(tmp_path, rows, baseline=named)
    first = table[table["variant"] == ""].set_index("topology")
    devices = {topology: prod(topology_shape(topology)) for topology in medians}
    for topology, median in medians.items():
        cell, expected = first.loc[topology], ("", None, None)
        if baseline and median:
            exact = Fraction(median) / Fraction(medians[baseline])
            share = exact * devices[baseline] / devices[topology]
            expected = (baseline, float(round(exact, 2)), float(round(share, 4)))
        found = (None if pd.isna(one) else one for one in (cell.speedup, cell.efficiency))
        assert (cell.baseline, *found) == expected


def test_cells_that_cannot_run_stand_in_the_table_and_count_what_the_suite_asks_for(tmp_path):
    cannot = Cell(runs=(RUN.model_copy(update={"system": "mxnet"}),), unsupported="not built yet")
    can = Cell(runs=(RUN.model_copy(update={"topology": "1n1g"}),), unsupported=None)
    table = summary(tmp_path, [row(5.0)], (cannot, can))
    said = table[["system", "status", "reason", "n"]].to_numpy().tolist()
    assert said == [["mxnet", "unsupported", "not built yet", 0], ["pytorch", "ok", "", 1]]
    assert table["unit"][0] == "images/s"
    assert summary(tmp_path, [], (cannot,), unit="tokens")["unit"][0] == "tokens/s"


NAN = float("nan")
MARKED = {name: "" if kind is str else NAN for name, kind in SUMMARY.items()}
MARKED |= {"throughput_median": 100.0, "num_nodes": 1, "hosts": "a"}


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
    assert marks_of(MARKED | said) == marks
    assert marks_of(MARKED | said | {"throughput_median": NAN}) == []
    assert [*map(is_doubtful, marks)] == [not {"hosts", "unconfirmed"} & {*said}] * len(marks)


def test_marks_of_runs_are_those_that_the_table_has_and_come_first():
    told = "on slow n3; starts elsewhere; scattered; one after the other"
    marks = marks_of(MARKED | {"load": 0.1, "marks": told})
    assert marks == ["on slow n3", "starts elsewhere", "one after the other", "machine busy"]
