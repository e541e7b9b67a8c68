"""Runs in containers, for real: Podman, and an image with another numpy than the lock's."""

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests.helpers.small_benchmark import SMALL, TOY, Benchmark, new_benchmark
from tests.helpers.small_image import NUMPY, TORCH, link_image
from tests.helpers.waiting import wait_for_text, wait_until

pytestmark = pytest.mark.image
SUITE = TOY["suites"][0] | {"input": "synthetic", "topologies": ["1n2g"], "repeats": 1}
RECORD = "results/runs/small/stand-in/1n2g/1/run.json"
PODMAN = {"engine": "podman"}


@pytest.fixture
def image(tmp_path: Path, stand_in_image: Path) -> Path:
    """An image that a test may change."""
    return link_image(stand_in_image, tmp_path / "image")


@pytest.fixture
def benchmark(tmp_path: Path) -> Benchmark:
    """A benchmark whose system has no environment at all."""
    return new_benchmark(tmp_path / "benchmark", tmp_path / "none")


def configure(benchmark: Benchmark, image: Path, **changes: object) -> None:
    """Let the benchmark's system come from an image."""
    there = {"images": {"stand-in": str(image)}, "container": PODMAN}
    benchmark.configure(**{"suites": [SUITE]} | there | changes)


def containers_of(benchmark: Benchmark) -> list[str]:
    listed = ["podman", "ps", "--all", "--quiet", f"--filter=volume={benchmark.folder}"]
    return subprocess.run(listed, check=True, capture_output=True, text=True).stdout.split()


def test_the_whole_report_is_made_from_an_image_and_names_it_and_again_once_that_changes(
    benchmark, image, tmp_path, begun, monkeypatch
):
    benchmark.take_over(begun)
    configure(benchmark, image)
    benchmark.made("results/report.html")
    digest = checked_digest(benchmark, image)
    page = (benchmark.folder / "results/report.html").read_text(encoding="utf-8")
    (row,) = [line for line in page.splitlines() if f"<code>{digest}</code></td>" in line]
    assert f"numpy {NUMPY}" in row
    assert str(image) in row
    assert "podman" in row
    assert benchmark.planned("results/report.html") == {}
    # Another engine is another launch; the image, looked at again, is the same.
    (tmp_path / "apptainer").touch(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    configure(benchmark, image, container={"engine": "apptainer"})
    assert benchmark.planned("results/report.html")["train"] == 1
    configure(benchmark, image)
    (image / "etc/motd").write_text("a newer image\n")
    # What was trained in the image as it was stays; what would train in it now is refused.
    assert benchmark.planned("results/report.html") == {}
    said = benchmark.refused("--forcerun", RECORD, "--retries", "0", "--", RECORD)
    assert f"its image {image} has changed since; once .images/" in said
    (made,) = benchmark.folder.glob(".images/*/environment.json")
    made.unlink()
    benchmark.made("--forcerun", RECORD, "--", RECORD)
    assert checked_digest(benchmark, image) != digest


def checked_digest(benchmark: Benchmark, image: Path) -> str:
    """The image's digest, as the record of the run says that was trained in it, like all else."""
    record = json.loads((benchmark.folder / RECORD).read_text())
    assert record["status"] == "ok"
    environment = record["environment"]
    assert environment["framework"] == environment["packages"]["numpy"] == NUMPY
    # What the image lacks is shown as not the image's.
    assert set(environment["overlay"]) == {"idna"}
    assert environment["image"]["engine"] == record["run"]["container"]["engine"] == "podman"
    assert environment["image"]["reference"] == str(image)
    # Nothing of the host's is used: there is no environment, and no path of one.
    assert not any(".envs" in word for word in record["command"])
    assert not list((benchmark.folder / ".envs").iterdir())
    log = (benchmark.folder / RECORD).with_name("train.log").read_text()
    assert f'"numpy": "{NUMPY}"' in log
    assert not containers_of(benchmark)
    kind, _, digest = environment["image"]["digest"].partition(":")
    assert kind == "sha256"
    return digest


def test_a_run_that_is_ended_leaves_no_process_and_no_container(benchmark, image):
    # Podman's containers are no children of its command.
    window = {"warmup": 2, "measured": 8}
    configure(benchmark, image, iterations=2000, window=window, time_limit=600)
    run = (benchmark.folder / RECORD).parent
    with benchmark.started(*benchmark.command(RECORD)) as process:
        wait_for_text(run, "tries/1/train.log", '"iteration": 2')
        assert containers_of(benchmark)
        os.killpg(process.pid, signal.SIGTERM)
        process.communicate(timeout=300)
    benchmark.wait_until_nobody_trains()
    wait_until(lambda: not containers_of(benchmark), "the containers to end")
    ended = json.loads((run / "tries/1/run.json").read_text())
    assert "stopped from outside: SIGTERM" in ended["reason"]


@pytest.mark.weekly
def test_an_images_torch_for_gpus_trains_and_says_what_it_was_compiled_for(benchmark, torch_image):
    suite = SMALL["suites"][0] | {"input": "synthetic", "topologies": ["1n2g"], "repeats": 1}
    benchmark.configure(suites=[suite], images={"pytorch": str(torch_image)}, container=PODMAN)
    record = "results/runs/small/pytorch/1n2g/1/run.json"
    benchmark.made(record)
    environment = json.loads((benchmark.folder / record).read_text())["environment"]
    assert environment["packages"]["torch"] == TORCH
    assert set(environment["overlay"]) == {"opencv-python-headless", "simplejpeg"}
    assert environment["cuda"] == "13.0"
    assert "sm_90" in environment["architectures"]
