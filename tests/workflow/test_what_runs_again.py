"""What decides a run is its plan: an edit reruns the runs whose plans it changes, and no other."""

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from reperf.builds import LockBuild
from reperf.systems import load_systems

from tests.helpers.small_benchmark import SMALL, Benchmark, new_benchmark

pytestmark = pytest.mark.xdist_group("recorded")  # one benchmark serves all tests
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
VARIANT = SUITES[-1] | {
    "name": "variant",
    "systems": [{"system": "pytorch", "variants": "compile"}],
}
EVERY = {f"{workload} {system}" for workload, systems in SYSTEMS.items() for system in systems}
EVERY |= {"variant pytorch+compile"}

# Writes the record that each planned run would leave: planning compares nothing else.
RECORD_ALL = """
from reperf.config import load_report
from reperf.files import sha256
from reperf.machine import resolve
from reperf.plans.planning import Plans
from reperf.training.record import Environment, Host, RunRecord
from reperf.written import read_written

report = resolve(load_report(read_written("config.yaml")))
for plan in Plans(report).runs.values():
    run = plan.run
    run.folder.mkdir(parents=True)
    run.log.touch()
    RunRecord(
        status="ok", run=run, plan=plan.digest, call="", attempt=1, command=(), variables={},
        environment=Environment(lock="", lock_sha256="", python="3.11", packages={}),
        trainer=plan.trainer, cluster=None,
        git_commit=None, git_dirty=None,
        host=Host(hostname="h", cpu="c", cores=2, memory_bytes=1, os="o", kernel="k"),
        started="", ended="", seconds=1.0, exit_code=0,
        log_sha256=sha256(run.log),
    ).write(run.record)
"""


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Benchmark:
    """A benchmark of several workloads all of whose runs are recorded as they are planned."""
    folder = tmp_path_factory.mktemp("recorded")
    environments = folder / "environments"
    for system in {system for systems in SYSTEMS.values() for system in systems}:
        built = environments / LockBuild(load_systems()[system], "cpu").folder.name
        built.mkdir(parents=True, exist_ok=True)
        (built / "environment.json").write_text("{}")
    benchmark = new_benchmark(folder / "benchmark", environments)
    benchmark.configure(suites=[*SUITES, VARIANT])
    subprocess.run(
        [sys.executable, "-c", RECORD_ALL],
        check=True,
        cwd=benchmark.folder,
        env=benchmark.environment,
    )
    return benchmark


@pytest.fixture
def again(recorded: Benchmark) -> Callable[..., set[str]]:
    """Which runs a dry run plans after files were changed, as "suite system".

    A change is a text to append, or one to replace and another.
    """
    before: dict[Path, str | None] = {}

    def plan(**changed: str | tuple[str, str]) -> set[str]:
        for name, change in changed.items():
            path = recorded.folder / "workflow" / name
            before[path] = path.read_text() if path.exists() else None
            path.parent.mkdir(exist_ok=True)
            if isinstance(change, str):
                path.write_text((before[path] or "") + change)
            else:
                assert change[0] in before[path]
                path.write_text(before[path].replace(*change))
        answer = recorded.snakemake("--dry-run", "--printshellcmds")
        assert answer.returncode == 0, answer.stdout
        found = re.findall(r"train (\S+): (\S+) on 1n1g, repeat 1$", answer.stdout, re.MULTILINE)
        return {" ".join(run) for run in found}

    yield plan
    for path, text in before.items():
        path.unlink() if text is None else path.write_text(text)


def of(*systems: str, workload: str = "") -> set[str]:
    """The runs of some systems, of one workload or of all."""
    found = {run for run in EVERY if run.split()[1].partition("+")[0] in systems}
    return {run for run in found if run.startswith(workload)}


CODE = {
    "trainers/frameworks/torch/vgg16.py": of("pytorch", "ngc-pytorch", workload="vgg16"),
    "trainers/launchers/horovod.py": of("ngc-tensorflow1", "mxnet"),
}
"""What is edited -> which runs stand on it; tests/unit/plans and tests/unit/building have more."""


def test_nothing_runs_again_where_nothing_has_changed(again):
    assert again() == set()


def test_comments_and_titles_run_nothing_again(again):
    changed = dict.fromkeys([*CODE, "workloads/vgg16.yaml"], "\n# edited\n")
    changed["workloads/resnet50.yaml"] = ("title: ", "title: Another ")
    changed["systems/pytorch/system.yaml"] = ("DistributedDataParallel over", "By")
    assert again(**changed) == set()


@pytest.mark.parametrize(("file", "runs"), CODE.items())
def test_an_edit_runs_again_what_stands_on_the_file_and_nothing_else(again, file, runs):
    assert again(**{file: "\nEDITED = True\n"}) == runs


def test_a_description_runs_again_the_runs_that_it_decides(again):
    launch = ("- -m\n", "- -O\n  - -m\n")
    assert again(**{"systems/pytorch/system.yaml": launch}) == of("pytorch")


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
