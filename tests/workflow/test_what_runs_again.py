"""What decides a run is the closure of its own program: an edit reruns what stands on it alone."""

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from small_benchmark import SMALL, Benchmark, new_benchmark

SYSTEMS = {
    "resnet50": ["pytorch", "ngc-pytorch", "tensorflow2", "ngc-tensorflow1", "oneflow", "mxnet"],
    "vgg16": ["pytorch", "ngc-pytorch", "tensorflow2", "ngc-tensorflow1", "paddlepaddle"],
    "alexnet": ["pytorch", "ngc-pytorch"],
}
SUITES = [
    SMALL["suites"][0]
    | {
        "name": workload,
        "workload": workload,
        "shape": {"image_size": 64},
        "input": "synthetic",
        "topologies": ["1n1g"],
        "repeats": 1,
        "systems": systems,
    }
    for workload, systems in SYSTEMS.items()
]
EVERY = {f"{workload} {system}" for workload, systems in SYSTEMS.items() for system in systems}

# Writes the record that each planned run would leave: planning compares nothing else.
RECORD_ALL = """
from reperf.builds import trainer_digest
from reperf.config import load_report
from reperf.files import sha256
from reperf.machine import resolve
from reperf.training.record import Environment, Host, RunRecord
from reperf.written import read_written

report = resolve(load_report(read_written("local/report.yaml")))
for suite in report.suites:
    for run in report.runs(suite):
        run.folder.mkdir(parents=True)
        (run.folder / "train.log").touch()
        RunRecord(
            status="ok", run=run, attempt=1, command=(), variables={},
            environment=Environment(lock="", lock_sha256="", python="3.11", packages={}),
            trainer=trainer_digest(run), cluster=None,
            git_commit=None, git_dirty=None,
            host=Host(hostname="h", cpu="c", cores=2, memory_bytes=1, os="o", kernel="k"),
            started="", ended="", seconds=1.0, exit_code=0,
            log_sha256=sha256(run.folder / "train.log"),
        ).write(run.folder / "run.json")
"""


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Benchmark:
    """A benchmark of several workloads all of whose runs are recorded as they are planned."""
    folder = tmp_path_factory.mktemp("recorded")
    environments = folder / "environments"
    for system in {system for systems in SYSTEMS.values() for system in systems}:
        (environments / system).mkdir(parents=True)
        (environments / system / "environment.json").write_text("{}")
    benchmark = new_benchmark(folder / "benchmark", environments)
    benchmark.configure(suites=SUITES)
    subprocess.run(
        [sys.executable, "-c", RECORD_ALL],
        check=True,
        cwd=benchmark.folder,
        env=benchmark.environment,
    )
    return benchmark


@pytest.fixture
def again(recorded: Benchmark) -> Callable[..., set[str]]:
    """Which runs a dry run plans after files were changed, as "workload system"."""
    before: dict[Path, str | None] = {}

    def plan(**changed: str) -> set[str]:
        for name, text in changed.items():
            path = recorded.folder / "workflow" / name
            before[path] = path.read_text() if path.exists() else None
            path.parent.mkdir(exist_ok=True)
            path.write_text((before[path] or "") + text)
        answer = recorded.snakemake("--dry-run")
        assert answer.returncode == 0, answer.stdout
        found = re.findall(r"train (\S+): (\S+) on 1n1g, repeat 1$", answer.stdout, re.MULTILINE)
        return {" ".join(run) for run in found}

    yield plan
    for path, text in before.items():
        path.unlink() if text is None else path.write_text(text)


def of(*systems: str, workload: str = "") -> set[str]:
    """The runs of some systems, of one workload or of all."""
    return {run for run in EVERY if run.split()[1] in systems and run.startswith(workload)}


def test_nothing_runs_again_where_nothing_has_changed(again):
    assert again() == set()


@pytest.mark.parametrize(
    ("file", "runs"),
    [
        ("trainers/frameworks/torch/vgg16.py", of("pytorch", "ngc-pytorch", workload="vgg16")),
        ("trainers/frameworks/torch/engine.py", of("pytorch", "ngc-pytorch")),
        ("trainers/recipes/vgg16.py", {run for run in EVERY if run.startswith("vgg16")}),
        ("trainers/frameworks/tensorflow/vgg16.py", of(*SYSTEMS["vgg16"][2:4], workload="vgg16")),
        ("trainers/launchers/horovod.py", of("ngc-tensorflow1", "mxnet")),
        ("systems/oneflow/resnet50.py", of("oneflow")),
        ("trainers/contract/steplog.py", EVERY),
        ("systems/pytorch/system.yaml", set()),
        ("workloads/resnet50.yaml", set()),
    ],
)
def test_an_edit_runs_again_what_stands_on_the_file_and_nothing_else(again, file, runs):
    assert again(**{file: "\n# edited\n"}) == runs


def test_a_new_workload_and_a_new_system_run_nothing_again(again, recorded):
    workflow = recorded.folder / "workflow"
    files = {
        "workloads/vgg19.yaml": (workflow / "workloads/vgg16.yaml").read_text(),
        "trainers/recipes/vgg19.py": (workflow / "trainers/recipes/vgg16.py").read_text(),
        "trainers/frameworks/torch/vgg19.py": "# a model\n",
        "systems/pytorch/vgg19.py": "# a program\n",
        "systems/ninth/system.yaml": json.dumps(
            {"title": "Ninth", "framework": "torch", "about": "one more", "shares": "pytorch"}
        ),
    }
    assert again(**files) == set()
