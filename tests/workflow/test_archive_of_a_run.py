"""Archives of real runs: checked, and rebuilt in an empty folder."""

import json
from pathlib import Path

import pytest
from reperf.files import sha256
from reperf.layout import FIGURE_KINDS, UNSCALED_KINDS
from reperf.tables import read_measurements

from tests.helpers.small_benchmark import Benchmark


@pytest.mark.parametrize(
    ("suite", "kinds"),
    [
        ("small", FIGURE_KINDS),
        pytest.param("small-synthetic", UNSCALED_KINDS, marks=pytest.mark.weekly),
    ],
)
def test_an_archive_alone_gives_the_same_tables_and_figures(suite, kinds, finished, tmp_path):
    file = finished / f"archive/{suite}.zip"
    Benchmark(finished).said("reperf", "archive", "verify", str(file))

    rebuilt = tmp_path / "rebuilt"
    Benchmark(finished).said("reperf", "archive", "rebuild", str(file), "--to", str(rebuilt))
    results = [
        *(f"results/suites/{suite}/{table}.csv" for table in ("measurements", "summary")),
        *(f"figures/{suite}-{kind}.{s}" for kind in kinds for s in ("svg", "png")),
    ]
    for name in results:
        made = (finished / name).read_bytes()
        assert (rebuilt / name).read_bytes() == made, name


def test_an_archive_is_measured_by_the_window_that_it_records(finished: Path):
    said = Benchmark(finished).said("reperf", "measure", "--json", "archive/small.zip")
    found = [json.loads(line) for line in said.splitlines()]
    table = read_measurements(finished / "results/suites/small/measurements.csv")
    assert [one["throughput"] for one in found] == list(table["throughput"])
    assert {(one["first"], one["last"]) for one in found} == {(2, 4)}
    # One that is asked for by hand goes before it.
    answer = Benchmark(finished).call("reperf", "measure", "--window", "1:4", "archive/small.zip")
    assert answer.stdout.count("1:4") == len(table)


@pytest.mark.long
def test_the_same_runs_are_archived_to_the_same_bytes(finished_benchmark: Benchmark):
    file = finished_benchmark.folder / "archive/small.zip"
    first = file.read_bytes()
    finished_benchmark.made("--forcerun", "archive", "--", "archive/small.zip")
    assert file.read_bytes() == first


@pytest.mark.long
def test_the_report_names_its_archives_and_another_report_keeps_them(finished_benchmark):
    folder = finished_benchmark.folder
    file = folder / "archive/small.zip"
    content, digest = file.read_bytes(), sha256(file)
    assert digest in (folder / "results/report.html").read_text()
    assert digest in (folder / "results/report.md").read_text()
    finished_benchmark.configure(title="another report")
    told = finished_benchmark.made()
    (kept,) = folder.glob("archive/small.*-*.zip")
    assert kept.stem.endswith(f"-{digest[:8]}")
    assert kept.read_bytes() == content
    said = f"archive/small.zip is of another configuration: it is kept as archive/{kept.name}"
    assert told.count(said) == 1
    page = (folder / "results/report.html").read_text()
    assert sha256(file) in page
    assert digest not in page
    verified = finished_benchmark.said("reperf", "archive", "verify", str(kept), str(file))
    assert verified.count("all as they were archived") == 2
