"""The largest batch that trains: searched below the stand-in's limit, and weekly by PyTorch."""

import json
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import pytest
from reperf.plans.run_plan import SHARE

from tests.helpers.small_benchmark import SMALL, TOY, Benchmark, new_benchmark

# One search serves all tests.
pytestmark = [pytest.mark.xdist_group("largest"), pytest.mark.long]
MULTIPLE = 8
SUITE = TOY["suites"][1] | {"batch_size": "largest", "batch_multiple": MULTIPLE}
TRAINED_BY = {
    # The toy says what fits: five times the multiple, and a little more.
    "stand-in": (TOY["suites"][0] | {"shape": {"fits": 43}}, 8_000_000_000),
    # Of this, PyTorch and its model take nine tenths, and a batch of some forty samples the rest.
    "pytorch": (SMALL["suites"][0], 1_460_000_000),
}
"""System -> what its suites have, and the limit of memory."""
BIG = 2048


@dataclass
class Searched(Benchmark):
    """A benchmark whose batch sizes were searched, and whose runs have trained with them."""

    system: str = ""

    def record(self, suite: str) -> dict:
        run = self.folder / f"results/runs/{suite}/{self.system}/1n1g/1/run.json"
        return json.loads(run.read_text())

    @property
    def limit(self) -> int:
        return TRAINED_BY[self.system][1]

    @property
    def tried_in(self) -> int:
        return self.limit * SHARE // 100

    def ask(self, **changes: object) -> None:
        """Configure two suites; in the second, not even the smallest batch fits."""
        trained_by, _ = TRAINED_BY[self.system]
        suite = SUITE | {one: trained_by[one] for one in ("workload", "shape", "systems")}
        suites = [
            suite | {"name": "largest"},
            suite | {"name": "none", "batch_multiple": BIG},
        ]
        self.configure(**{"suites": suites, "memory_limit": self.limit} | changes)


@pytest.fixture(
    scope="module", params=["stand-in", pytest.param("pytorch", marks=pytest.mark.weekly)]
)
def searched(request, tmp_path_factory: pytest.TempPathFactory, environments, begun) -> Searched:
    if request.param == "pytorch":
        request.getfixturevalue("built_environments")("pytorch")
    folder = tmp_path_factory.mktemp("searched") / "benchmark"
    benchmark = Searched(new_benchmark(folder, environments).folder, request.param)
    benchmark.take_over(begun)
    benchmark.ask()
    said = benchmark.made("results/report.html", "archive/largest.zip")
    assert said.count(f"find the largest batch of {request.param}; its log: ") == 2
    return benchmark


def test_the_found_batch_trains_and_the_next_multiple_does_not(searched: Searched):
    ended = searched.record("largest")
    found = ended["largest"]
    size = ended["run"]["batch_size"]
    assert (ended["status"], found["status"], found["batch_size"]) == ("ok", "ok", size)
    assert (found["memory_bytes"], ended["run"]["batch_multiple"]) == (searched.tried_in, MULTIPLE)
    trials = sorted((trial["batch_size"], trial["status"]) for trial in found["trials"])
    assert (size, "ok") in trials
    assert (size + MULTIPLE, "oom") in trials
    assert trials.count((size, "ok")) >= 3
    assert all(status == "ok" for batch, status in trials if batch <= size)
    assert trials[0][0] == MULTIPLE
    fitted = [trial for trial in found["trials"] if trial["batch_size"] <= size]
    peaks = {trial["batch_size"]: trial["peak_memory_bytes"][0] for trial in fitted}
    if searched.system == "stand-in":
        assert size == 40
    else:  # neighbours differ by little more than chance
        assert peaks[MULTIPLE] < peaks[size]
    assert max(peaks.values()) <= searched.tried_in
    for trial in found["trials"]:
        log = searched.folder / trial["log"]
        tried = json.loads(log.with_name("run.json").read_text())
        ended = tried["run"]["batch_size"], tried["status"]
        assert ended == (trial["batch_size"], trial["status"])
        assert f"--batch-size {trial['batch_size']} " in " ".join(tried["command"])


def test_what_was_found_is_in_the_tables(searched: Searched):
    largest = searched.record("largest")
    assert len(list(searched.folder.glob(f"results/largest/{searched.system}/*/batch.json"))) == 2
    cells = pd.read_csv(searched.folder / "results/summary.csv").set_index("suite")
    size = largest["run"]["batch_size"]
    assert list(cells["batch_size_per_device"]) == [size, BIG]
    assert list(cells["status"]) == ["ok", "oom"]
    runs = pd.read_csv(searched.folder / "results/measurements.csv")
    assert list(runs["global_batch"]) == [size, BIG]
    # Where not even the smallest fits.
    ended = searched.record("none")
    assert ended["status"] == "oom"
    assert ended["reason"].startswith(f"not even {BIG} samples per device fit: rank 0: ")
    [trial] = ended["largest"]["trials"]
    log = searched.folder / f"results/runs/none/{searched.system}/1n1g/1/train.log"
    assert log.read_bytes() == (searched.folder / trial["log"]).read_bytes()


def test_the_report_and_the_archive_say_how_it_was_found(searched: Searched, tmp_path: Path):
    size = searched.record("largest")["run"]["batch_size"]
    page = (searched.folder / "results/report.html").read_text()
    memory = f"{searched.tried_in / 2**30:.1f} GiB"
    said = f"{size}; multiples of {MULTIPLE} were tried in memory of {memory}: {MULTIPLE} trained"
    assert said in page
    for form in ("html", "md"):
        said = (searched.folder / f"results/report.{form}").read_text()
        assert f"the batch size is the largest multiple of {MULTIPLE} that trains" in said
        assert "The largest batch size was found by trials before any run" in said
    rebuilt = ("archive/largest.zip", "--to", str(tmp_path / "new"))
    searched.said("reperf", "archive", "rebuild", *rebuilt)
    [found] = (tmp_path / "new").glob(f"results/largest/{searched.system}/*/batch.json")
    trials = json.loads(found.read_text())["trials"]
    assert all((tmp_path / "new" / trial["log"]).exists() for trial in trials)


def test_nothing_is_searched_again_until_something_that_decides_it_changes(searched: Searched):
    def planned(**changes: object) -> dict[str, int]:
        searched.ask(**changes)
        jobs = searched.planned("results/report.html")
        return {rule: jobs[rule] for rule in ("largest", "train") if rule in jobs}

    assert planned(time_limit=90, title="Another") == {}
    assert planned(memory_limit=searched.limit + 1000) == {"largest": 2, "train": 2}
    trainer = searched.folder / "workflow/trainers/contract/driver.py"
    before = trainer.read_text()
    trainer.write_text(before + "\nEDITED = True\n")
    assert planned() == {"largest": 2, "train": 2}
    trainer.write_text(before)
    trial = searched.record("none")["largest"]["trials"][0]["log"]
    found = (searched.folder / trial).parents[2] / "batch.json"
    found.write_text(found.read_text().replace('"oom"', '"ok"'))
    assert planned() == {"train": 1}  # which refuses it
