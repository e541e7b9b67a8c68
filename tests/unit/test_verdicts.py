"""The table of verdicts and the rows for a spreadsheet, whatever logs and reasons say."""

import csv
import random
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reperf.measuring.measure import Measurement
from reperf.measuring.verdicts import csv_lines, kind_of, table
from reperf.text import from_field, printable

texts = st.text(max_size=30)
counts = st.none() | st.integers(0, 10**6)
measurements = st.builds(
    Measurement,
    log=texts,
    format=st.none() | texts,
    status=st.just("refused"),
    reason=texts.filter(bool),
    unit=st.none() | texts,
    first=st.just(20),
    last=st.just(120),
    global_batch=counts,
    run=st.integers(1, 3),
    first_printed=st.just(0),
    last_printed=counts,
    interval=st.none() | st.integers(1, 100),
    widest=st.none() | st.tuples(st.integers(0, 100), st.integers(101, 200)),
    sources=st.dictionaries(texts, texts, max_size=2),
) | st.builds(
    Measurement,
    log=texts,
    format=texts,
    status=st.just("ok"),
    throughput=st.floats(1e-9, 1e15),
    unit=texts,
)


@given(st.lists(measurements, max_size=8))
def test_every_run_is_on_one_printable_line_and_counted(found):
    lines = list(table(found))
    assert lines == [printable(line) for line in lines]
    measured = sum(one.status == "ok" for one in found)
    summary = f"{measured} measured, {len(found) - measured} refused"
    assert [line for line in lines[-2:] if line.startswith(summary)]
    headings = [re.match(r"(\d+) (?:measured$|refused: )", line) for line in lines]
    assert sum(int(match[1]) for match in headings if match) >= len(found)


@given(st.lists(measurements, max_size=8))
def test_rows_give_back_what_was_measured(found):
    rows = list(csv.DictReader(csv_lines(found)))
    for row, one in zip(rows, found, strict=True):
        assert from_field(row["log"]) == one.log
        assert from_field(row["reason"]) == one.reason
        assert (float(row["throughput"]) if row["throughput"] else None) == one.throughput
        assert row["run"] == str(one.run)


@pytest.mark.parametrize(
    ("reason", "kind"),
    [
        ("too short: it ends at iteration 12, the window at 120", "too short"),
        (
            "the time from iteration 20 to 40 is not in the log: printed are 40, 60",
            "the time from iteration .. to .. is not in the log",
        ),
        (
            "the printed speeds mean 1.5e+03 images a step, the global batch is 2048",
            "the printed speeds mean .. images a step, the global batch is ..",
        ),
        ("/x/1/run.json: not there; a run leaves one beside its log", "not there; a run leaves"),
        ("/x/1/train.log: is no whole archive: bad", "is no whole archive"),
        ("no iteration as tensorflow2-bert prints it is in the log", "no iteration as tensorflow2"),
    ],
)
def test_reasons_of_one_kind_differ_in_numbers_and_paths_alone(reason, kind):
    refused = Measurement("/x/1/train.log", None, "refused", reason)
    assert kind_of(refused).startswith(kind)


def test_the_most_frequent_kind_comes_first_behind_what_was_measured():
    found = [Measurement(f"{n}.log", None, "refused", "too short: by 1") for n in range(3)]
    found += [Measurement(f"{n}.log", None, "refused", "no known format") for n in range(3, 8)]
    found.append(Measurement("9.log", "mllog", "ok", "", 10.0, "images/s"))
    random.Random(1).shuffle(found)
    lines = list(table(found))
    assert [line for line in lines if re.match(r"\d", line)] == [
        "1 measured",
        "5 refused: no known format",
        "3 refused: too short: by 1",
        "1 measured, 8 refused: 5 no known format; 3 too short",
    ]
