"""The tables: equal bytes for equal content, and cells that say what became of their runs."""

import math
from fractions import Fraction
from math import prod
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from reperf.config import Cell, topology_shape
from reperf.errors import ReperfError
from reperf.logs.facts import Facts
from reperf.measuring.found_logs import RunResult
from reperf.measuring.measure import Measurement
from reperf.measuring.suite_rows import row_of
from reperf.measuring.summary import summarise
from reperf.systems.workloads import load_workloads
from reperf.tables import (
    MEASUREMENTS,
    SUMMARY,
    join_tables,
    read_measurements,
    read_summary,
    write_table,
)

from tests.helpers.runs import RUN, SUITE


def row(repeat: int, throughput: float | None, topology: str = "1n1g", **more: str) -> dict:
    run = RUN.model_copy(update={"repeat": repeat, "topology": topology})
    status = more.pop("status", "ok" if throughput else "failed")
    measured = Measurement("log", "mllog", "ok", throughput=throughput, method="window", **more)
    result = RunResult(measured, Facts(), planned=run, digest="0" * 64)
    return row_of(SUITE, result) | {"status": status}


def written(folder: Path, rows: list[dict], columns: list[str] = MEASUREMENTS) -> Path:
    write_table(folder / "table.csv", rows, columns)
    return folder / "table.csv"


def summary(folder: Path, rows: list[dict], cells: tuple[Cell, ...] = (), **asked: str | None):
    cells = summarise(read_measurements(written(folder, rows)), cells, **asked)
    return read_summary(written(folder, cells, SUMMARY))


def test_bytes_are_fixed(tmp_path):
    text = written(tmp_path, [row(1, 0.1 + 0.2), row(2, 384.0)]).read_bytes()
    assert b"\r" not in text
    assert b",0.30000000000000004,images/s," in text
    assert b",384,images/s," in text
    assert text.endswith(b"\n")


ODD = st.sampled_from("\x00\t\n\r\x1b\x85\u2028\u202e\ufeff\udcff\U000e0001'=+-@\\x1b\\n\\,\"")
ROWS = st.tuples(
    st.floats(min_value=1e-9, max_value=1e12), st.text(st.characters(exclude_categories=()) | ODD)
)
BLANK = row(1, None)


@given(rows=st.lists(ROWS, max_size=20))
@example(rows=[(1.0, "a\rforged,row"), (1.0, "'=1"), (1.0, r"C:\new\x1b")])
@settings(max_examples=40)
def test_numbers_and_reasons_are_read_back_exactly_and_each_stays_in_its_line(
    tmp_path_factory, rows
):
    path = written(
        tmp_path_factory.mktemp("table"),
        [BLANK | {"throughput": number, "reason": reason} for number, reason in rows],
    )
    assert len(path.read_text(encoding="utf-8").splitlines()) == 1 + len(rows)
    table = read_measurements(path)
    assert [*zip(table["throughput"], table["reason"], strict=True)] == rows


def test_numbers_and_harmless_text_stand_in_a_table_as_they_are(tmp_path):
    ordinary = "rank 3: it's -9, 1 + 1 = 2 @ 5 % in C:\\logs, \u00fcber \u6570\u636e"
    rows = [row(1, -1.5, reason=ordinary) | {"repeat": -1}]
    path = written(tmp_path, rows, ["repeat", "throughput", "reason"])
    assert path.read_text(encoding="utf-8").splitlines()[1] == f'-1,-1.5,"{ordinary}"'


def test_a_cell_is_the_median_of_its_repeats_and_one_run_has_no_spread(tmp_path):
    rows = [row(k, value) for k, value in enumerate((3.0, 1.0, 2.0, 5.0, 4.0, 7.0, 6.0), start=1)]
    rows += [row(1, 5.0, "1n2g"), row(2, None, "1n2g"), row(1, None, "1n4g")]
    cell, one, none = summary(tmp_path, rows).itertuples()
    assert (cell.status, cell.n, cell.throughput_median) == ("ok", 7, 4.0)
    assert (cell.throughput_min, cell.throughput_max, cell.throughput_iqr) == (1.0, 7.0, 3.0)
    assert (cell.ci_low, cell.ci_high, cell.ci_level) == (1.0, 7.0, 0.984375)
    assert (cell.unit, cell.method) == ("images/s", "window")
    assert (one.n, one.throughput_min, one.throughput_max) == (1, 5.0, 5.0)
    assert math.isnan(one.throughput_iqr)
    assert (none.n, math.isnan(none.throughput_median)) == (0, True)


@pytest.mark.parametrize(
    ("waited", "of_the_cell"),
    [((0.1, 0.3, 0.8), 0.3), ((0.1, None, 0.3), 0.2), ((None, None), None), ((0.0,), 0.0)],
)
def test_a_cell_waited_for_the_median_of_what_its_runs_did(tmp_path, waited, of_the_cell):
    rows = [row(repeat, 100.0, waited=one) for repeat, one in enumerate(waited, 1)]
    [cell] = summary(tmp_path, rows).itertuples()
    assert (None if pd.isna(cell.waited) else cell.waited) == of_the_cell


def test_repeats_that_scatter_give_a_range_of_speedups(tmp_path):
    rows = [row(k, value) for k, value in enumerate((90.0, 100.0, 125.0), start=1)]
    rows += [row(k, value, "1n2g") for k, value in enumerate((150.0, 200.0, 225.0), start=1)]
    table = summary(tmp_path, rows)
    assert list(table["speedup_low"].fillna(0)) == [0, 1.2]  # of itself, none
    assert list(table["speedup_high"].fillna(0)) == [0, 2.5]


@pytest.mark.parametrize(
    ("medians", "named", "baseline"),
    [
        ({"1n1g": 100.0, "1n2g": 190.0, "2n2g": 350.0}, None, "1n1g"),
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
    rows = [row(1, median, topology) for topology, median in medians.items()]
    # A second series is none of the first one's business.
    rows.insert(1, row(1, 5.0, "1n2g") | {"variant": "compile"})
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


def test_a_step_of_trainers_that_keep_their_own_time_is_the_mean_of_theirs(tmp_path):
    """Rank 0 has made 120 of their 200 iterations in these seconds."""
    more = {"method": "together", "first": 20, "last": 140, "seconds": 16.0, "global_batch": 8}
    both = row(1, 100.0, "1n2g") | more | {"samples": 1600, "unit": "images/s"}
    [cell] = summary(tmp_path, [both]).itertuples()
    assert cell.step_ms == 160.0


def test_records_say_where_a_cell_was_measured_and_what_it_took(tmp_path):
    known = {"hosts": "a b", "commit": "c0ffee", "key": "1:ab x=1", "peak_memory": 7}
    known |= {"first": 20, "last": 120, "seconds": 16.0, "global_batch": 16, "joules": 3200.0}
    other = {"hosts": "b c", "peak_memory": 9, "matrix_rate": 1e12, "data_sheet_rate": 2e12}
    other |= {"estimated_memory": 8}
    rows = [
        row(1, 100.0, "1n2g") | known | {"date": "2026-01-02", "load_before": 0.5},
        row(2, 100.0, "1n2g") | known | {"date": "2026-01-01", "load_during": 0.01} | other,
    ]
    [cell] = summary(tmp_path, rows).itertuples()
    said = (cell.hosts, cell.date, cell.commit, cell.key)
    assert said == ("a b c", "2026-01-01", "c0ffee", "1:ab x=1")
    assert (cell.load, cell.peak_memory, cell.per_device, cell.step_ms) == (0.5, 9, 50.0, 160.0)
    assert (cell.joules_per_sample, cell.estimated_memory) == (2.0, 8)
    # 16 samples in 0.16 s on 2 devices are 50 a second on each; what one costs goes by the shape.
    small = load_workloads()["resnet50"].flops_at({"image_size": 64})
    assert cell.flop_utilisation == pytest.approx(50 * small / 1e12)
    counted = [one | {"shape": "image_size=224"} for one in rows]
    [cell] = summary(tmp_path, counted).itertuples()
    assert cell.flop_utilisation == pytest.approx(50 * 24299077632 / 1e12)
    assert cell.data_sheet_utilisation == cell.flop_utilisation / 2
    [cell] = summary(tmp_path, [one | {"precision": "fp8"} for one in counted]).itertuples()
    assert pd.isna([cell.flop_utilisation, cell.data_sheet_utilisation]).all()
    # Of a batch's places the log counts those that were computed.
    computed = {"workload": "transformer", "unit": "tokens/s"}
    computed |= {"also_throughput": 96.0, "also_unit": "places/s"}
    whole = load_workloads()["transformer"]
    shape = " ".join(f"{key}={value}" for key, value in whole.default_shape.items())
    [cell] = summary(tmp_path, [rows[1] | computed | {"shape": shape}]).itertuples()
    assert cell.flop_utilisation == pytest.approx(48 * whole.flops.sample / 1e12)
    [cell] = summary(tmp_path, [rows[0], rows[1] | {"key": "1:cd x=2"}]).itertuples()
    assert cell.key == ""


def test_cells_that_cannot_run_stand_in_the_table_and_count_what_the_suite_asks_for(tmp_path):
    cannot = Cell(runs=(RUN.model_copy(update={"system": "mxnet"}),), unsupported="not built yet")
    can = Cell(runs=(RUN.model_copy(update={"topology": "1n1g"}),), unsupported=None)
    table = summary(tmp_path, [row(1, 5.0)], (cannot, can))
    assert list(table["system"]) == ["mxnet", "pytorch"]
    assert list(table["status"]) == ["unsupported", "ok"]
    assert list(table["reason"]) == ["not built yet", ""]
    assert list(table["n"]) == [0, 1]
    assert table["unit"][0] == "images/s"
    assert summary(tmp_path, [], (cannot,), unit="tokens")["unit"][0] == "tokens/s"


def test_tables_are_joined_in_order(tmp_path):
    for name in ("b", "a"):
        write_table(tmp_path / name, [row(1, 1.5) | {"suite": name}], MEASUREMENTS)
    join_tables([tmp_path / "b", tmp_path / "a"], tmp_path / "all", MEASUREMENTS)
    assert list(read_measurements(tmp_path / "all")["suite"]) == ["b", "a"]


def test_a_table_that_is_none_is_one_line(tmp_path):
    (tmp_path / "table.csv").write_text("suite,system\n1,2\n")
    with pytest.raises(ReperfError, match=r"table.csv: column workload is missing"):
        read_summary(tmp_path / "table.csv")
    odd = written(tmp_path, [row(1, 1.0) | {"repeat": "two"}])
    with pytest.raises(ReperfError, match=r"line 2: repeat is 'two'; allowed: a number"):
        read_measurements(odd)
