"""Archives of real runs: checked, and rebuilt in an empty folder."""

from pathlib import Path

import pytest
from small_benchmark import Benchmark


@pytest.mark.parametrize("suite", ["small", "small-synthetic"])
def test_an_archive_alone_gives_the_same_tables_and_figures(
    suite: str, finished_benchmark: Benchmark, tmp_path: Path
):
    file = finished_benchmark.folder / f"archive/{suite}.zip"
    answer = finished_benchmark.call("reperf", "archive", "verify", str(file))
    assert answer.returncode == 0, answer.stdout

    rebuilt = tmp_path / "rebuilt"
    answer = finished_benchmark.call(
        "reperf", "archive", "rebuild", str(file), "--to", str(rebuilt)
    )
    assert answer.returncode == 0, answer.stdout
    results = [
        *(f"results/suites/{suite}/{table}.csv" for table in ("measurements", "summary")),
        *(
            f"figures/{suite}-{kind}.{s}"
            for kind in ("throughput", "speedup")
            for s in ("svg", "png")
        ),
    ]
    for name in results:
        made = (finished_benchmark.folder / name).read_bytes()
        assert (rebuilt / name).read_bytes() == made, name


def test_the_same_runs_are_archived_to_the_same_bytes(finished_benchmark: Benchmark):
    file = finished_benchmark.folder / "archive/small.zip"
    first = file.read_bytes()
    answer = finished_benchmark.snakemake("--forcerun", "archive", "--", "archive/small.zip")
    assert answer.returncode == 0, answer.stdout
    assert file.read_bytes() == first
