"""The largest batch that trains, searched below a memory limit by a real trainer."""

import json
from pathlib import Path

import pandas as pd
import pytest
from reperf.archive.rebuild import rebuild
from reperf.training.batch_search import SHARE

from tests.helpers.small_benchmark import SMALL, Benchmark, new_benchmark

# Of this, PyTorch and its model take nine tenths, and a batch of some forty samples the rest.
LIMIT = 1_460_000_000
TRIED_IN = LIMIT * SHARE // 100
MULTIPLE = 8
pytestmark = pytest.mark.xdist_group("largest")  # one search serves all tests
SUITE = SMALL["suites"][1] | {
    "precision": "fp32",
    "batch_size": "largest",
    "batch_multiple": MULTIPLE,
    "systems": ["pytorch"],
}
# The second one shares the first one's search; of the third, not even the smallest batch fits.
SUITES = [
    SUITE | {"name": "largest"},
    SUITE | {"name": "same"},
    SUITE | {"name": "none", "batch_multiple": 2048},
]


@pytest.fixture(scope="module")
def searched(
    tmp_path_factory: pytest.TempPathFactory, environments: Path, begun: Path
) -> Benchmark:
    """A benchmark whose batch sizes were searched, and whose runs have trained with them."""
    benchmark = new_benchmark(tmp_path_factory.mktemp("searched") / "benchmark", environments)
    benchmark.take_over(begun)
    benchmark.configure(suites=SUITES, memory_limit=LIMIT)
    answer = benchmark.snakemake()
    assert answer.returncode == 0, answer.stdout
    assert answer.stdout.count("find the largest batch of pytorch; its log: ") == 2
    return benchmark


def record(benchmark: Benchmark, suite: str) -> dict:
    run = benchmark.folder / f"results/runs/{suite}/pytorch/1n1g/1/run.json"
    return json.loads(run.read_text())


def test_the_found_batch_trains_and_the_next_multiple_does_not(searched: Benchmark):
    ended = record(searched, "largest")
    found = ended["largest"]
    size = ended["run"]["batch_size"]
    assert (ended["status"], found["status"], found["batch_size"]) == ("ok", "ok", size)
    assert (found["memory_bytes"], ended["run"]["batch_multiple"]) == (TRIED_IN, MULTIPLE)
    trials = sorted((trial["batch_size"], trial["status"]) for trial in found["trials"])
    assert (size, "ok") in trials
    assert (size + MULTIPLE, "oom") in trials
    assert trials.count((size, "ok")) >= 3
    assert all(status == "ok" for batch, status in trials if batch <= size)
    assert trials[0][0] == MULTIPLE
    peaks = {
        t["batch_size"]: t["peak_memory_bytes"][0]
        for t in found["trials"]
        if t["batch_size"] <= size
    }
    # Neighbours differ by little more than chance.
    assert peaks[MULTIPLE] < peaks[size]
    assert max(peaks.values()) <= TRIED_IN
    for trial in found["trials"]:
        log = searched.folder / trial["log"]
        tried = json.loads(log.with_name("run.json").read_text())
        assert (tried["run"]["batch_size"], tried["status"]) == (
            trial["batch_size"],
            trial["status"],
        )
        assert f"--batch-size {trial['batch_size']} " in " ".join(tried["command"])


def test_a_search_is_shared_and_its_number_is_in_the_tables(searched: Benchmark):
    largest = record(searched, "largest")
    assert record(searched, "same")["largest"] == largest["largest"]
    assert len(list(searched.folder.glob("results/largest/pytorch/*/batch.json"))) == 2
    cells = pd.read_csv(searched.folder / "results/summary.csv").set_index("suite")
    size = largest["run"]["batch_size"]
    assert list(cells["batch_size_per_device"]) == [size, size, 2048]
    assert list(cells["status"]) == ["ok", "ok", "oom"]
    runs = pd.read_csv(searched.folder / "results/measurements.csv")
    assert list(runs["global_batch"]) == [size, size, 2048]


def test_where_not_even_the_smallest_fits_the_cell_is_out_of_memory(searched: Benchmark):
    ended = record(searched, "none")
    assert ended["status"] == "oom"
    assert ended["reason"].startswith("not even 2048 samples per device fit: rank 0: ")
    [trial] = ended["largest"]["trials"]
    log = searched.folder / "results/runs/none/pytorch/1n1g/1/train.log"
    assert log.read_bytes() == (searched.folder / trial["log"]).read_bytes()


def test_the_report_and_the_archives_say_how_it_was_found(searched: Benchmark, tmp_path: Path):
    size = record(searched, "largest")["run"]["batch_size"]
    page = (searched.folder / "results/report.html").read_text()
    memory = f"{TRIED_IN / 2**30:.1f} GiB"
    said = f"{size}; multiples of {MULTIPLE} were tried in memory of {memory}: {MULTIPLE} trained"
    assert said in page
    for form in ("html", "md"):
        said = (searched.folder / f"results/report.{form}").read_text()
        assert f"the batch size is the largest multiple of {MULTIPLE} that trains" in said
        assert "The largest batch size was found by trials before any run" in said
    for suite in ("largest", "none"):
        rebuild(searched.folder / f"archive/{suite}.zip", tmp_path / suite)
        [found] = (tmp_path / suite).glob("results/largest/pytorch/*/batch.json")
        trials = json.loads(found.read_text())["trials"]
        assert all((tmp_path / suite / trial["log"]).exists() for trial in trials)


def test_nothing_is_searched_again_until_something_that_decides_it_changes(searched: Benchmark):
    def planned(**changes: object) -> dict[str, int]:
        searched.configure(**{"suites": SUITES, "memory_limit": LIMIT} | changes)
        jobs = searched.planned()
        return {rule: jobs[rule] for rule in ("largest", "train") if rule in jobs}

    assert planned(time_limit=90, title="Another") == {}
    assert planned(memory_limit=LIMIT + 1000) == {"largest": 2, "train": 3}
    trainer = searched.folder / "workflow/trainers/frameworks/torch/resnet50.py"
    before = trainer.read_text()
    trainer.write_text(before + "\nEDITED = True\n")
    assert planned() == {"largest": 2, "train": 3}
    trainer.write_text(before)
    trial = record(searched, "none")["largest"]["trials"][0]["log"]
    found = (searched.folder / trial).parents[2] / "batch.json"
    found.write_text(found.read_text().replace('"oom"', '"ok"'))
    assert planned() == {"largest": 1, "train": 1}
