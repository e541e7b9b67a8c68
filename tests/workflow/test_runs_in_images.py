"""Runs in containers, for real: an image with another numpy than the lock's, and three engines."""

import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.helpers.small_benchmark import SMALL, TOY, Benchmark, new_benchmark
from tests.helpers.small_image import NUMPY, TORCH, link_image

pytestmark = pytest.mark.image
SUITE = TOY["suites"][0] | {"input": "synthetic", "topologies": ["1n2g"], "repeats": 1}
RECORD = "results/runs/small/stand-in/1n2g/1/run.json"


@pytest.fixture
def benchmark(tmp_path: Path, stand_in_image: Path, podman_settings: None) -> Benchmark:
    """A benchmark whose system comes from an image; it has no environment at all."""
    (tmp_path / "none").mkdir()
    made = new_benchmark(tmp_path / "benchmark", tmp_path / "none")
    configure(made, stand_in_image, "charliecloud")
    return made


def configure(benchmark: Benchmark, image: Path | str, engine: str, **changes: object) -> None:
    container = {"engine": engine}
    benchmark.configure(
        **{"suites": [SUITE], "images": {"stand-in": str(image)}, "container": container} | changes
    )


def record_of(benchmark: Benchmark) -> dict:
    return json.loads((benchmark.folder / RECORD).read_text())


def test_a_run_is_trained_by_the_images_own_python_and_torch_and_again_once_that_changes(
    benchmark, stand_in_image, tmp_path
):
    image = link_image(stand_in_image, tmp_path / "image")
    configure(benchmark, image, "bubblewrap")
    answer = benchmark.snakemake(RECORD)
    assert answer.returncode == 0, answer.stdout
    check_record(benchmark, image, "bubblewrap")
    before = record_of(benchmark)["environment"]["image"]["digest"]
    (image / "etc/motd").write_text("a newer image\n")
    answer = benchmark.snakemake(RECORD)
    assert answer.returncode == 0, answer.stdout
    assert "has changed since" in answer.stdout
    check_record(benchmark, image, "bubblewrap")
    assert record_of(benchmark)["environment"]["image"]["digest"] != before


def check_record(benchmark: Benchmark, stand_in_image: Path, engine: str) -> None:
    """What a run's record says of the image that it was trained in."""
    record = record_of(benchmark)
    assert record["status"] == "ok"
    environment = record["environment"]
    assert environment["framework"] == environment["packages"]["numpy"] == NUMPY
    # What the image lacks is shown as not the image's.
    assert set(environment["overlay"]) == {"idna"}
    assert environment["image"]["engine"] == engine
    assert environment["image"]["reference"] == str(stand_in_image)
    assert environment["image"]["digest"].startswith("sha256:")
    assert record["run"]["container"]["engine"] == engine
    # Nothing of the host's is used: there is no environment, and no path of one.
    assert not any(".envs" in word for word in record["command"])
    assert not list((benchmark.folder / ".envs").iterdir())
    log = (benchmark.folder / RECORD).with_name("train.log").read_text()
    assert f'"numpy": "{NUMPY}"' in log


def containers_of_podman() -> list[str]:
    listed = ["podman", "ps", "--all", "--quiet", "--filter", "name=reperf-"]
    return subprocess.run(listed, check=True, capture_output=True, text=True).stdout.split()


def test_podman_trains_in_an_image_and_leaves_no_process_and_no_container(
    benchmark, stand_in_image
):
    configure(benchmark, stand_in_image, "podman")
    answer = benchmark.snakemake(RECORD)
    assert answer.returncode == 0, answer.stdout
    check_record(benchmark, stand_in_image, "podman")
    assert not containers_of_podman()
    # One that is ended, too: its containers are no children of its command, as other engines'
    # processes are.
    run = (benchmark.folder / RECORD).parent
    shutil.rmtree(run)
    window = {"warmup": 2, "measured": 8}
    configure(benchmark, stand_in_image, "podman", iterations=2000, window=window, time_limit=600)
    process = subprocess.Popen(
        benchmark.command(RECORD),
        cwd=benchmark.folder,
        env=benchmark.environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    log = run / "tries/1/train.log"
    until = time.monotonic() + 500
    while not (log.exists() and '"iteration": 2' in log.read_text()):
        assert time.monotonic() < until, "the run never began"
        assert process.poll() is None
        time.sleep(0.5)
    os.killpg(process.pid, signal.SIGTERM)
    process.wait(300)
    until = time.monotonic() + 120
    while benchmark.trainers() or containers_of_podman():
        assert time.monotonic() < until, (benchmark.trainers(), containers_of_podman())
        time.sleep(0.5)
    ended = json.loads(log.with_name("run.json").read_text())
    assert "stopped from outside: SIGTERM" in ended["reason"]


def test_the_whole_report_is_made_from_an_image_and_names_it(benchmark, stand_in_image, begun):
    benchmark.take_over(begun)
    answer = benchmark.snakemake()
    assert answer.returncode == 0, answer.stdout
    check_record(benchmark, stand_in_image, "charliecloud")
    page = (benchmark.folder / "results/report.md").read_text()
    digest = record_of(benchmark)["environment"]["image"]["digest"].removeprefix("sha256:")
    (row,) = [line for line in page.splitlines() if digest in line]
    assert f"numpy {NUMPY}" in row
    assert str(stand_in_image) in row
    assert "charliecloud" in row
    assert benchmark.planned() == {}
    # Another engine is another launch; the image, looked at again, is the same.
    configure(benchmark, stand_in_image, "bubblewrap")
    assert benchmark.planned()["train"] == 1


@pytest.mark.weekly
def test_an_images_torch_for_gpus_trains_and_says_what_it_was_compiled_for(
    benchmark, torch_image, podman_settings
):
    suite = SMALL["suites"][0] | {"input": "synthetic", "topologies": ["1n2g"], "repeats": 1}
    container = {"engine": "podman"}
    benchmark.configure(suites=[suite], images={"pytorch": str(torch_image)}, container=container)
    record = "results/runs/small/pytorch/1n2g/1/run.json"
    answer = benchmark.snakemake(record)
    assert answer.returncode == 0, answer.stdout
    environment = json.loads((benchmark.folder / record).read_text())["environment"]
    assert environment["packages"]["torch"] == TORCH
    assert set(environment["overlay"]) == {"opencv-python-headless", "simplejpeg"}
    assert environment["cuda"] == "13.0"
    assert "sm_90" in environment["architectures"]
