"""What decides a run is its plan: an edit reruns the runs whose plans it changes, and no other."""

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.helpers.small_benchmark import SMALL, Benchmark, new_benchmark

pytestmark = pytest.mark.xdist_group("planned")  # one benchmark serves all tests
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

# The digest of each run's plan, which is the param that decides for Snakemake.
DIGESTS = """
import json
from reperf.config import load_report
from reperf.machine import resolve
from reperf.plans.planning import Plans
from reperf.yaml_files import read_yaml_file

report = resolve(load_report(read_yaml_file("config.yaml")))
runs = Plans(report).runs.values()
print(json.dumps({f"{plan.run.suite} {plan.run.entry}": plan.digest for plan in runs}))
"""


def digests_in(benchmark: Benchmark) -> dict[str, str]:
    """Run, as "suite system" -> the digest of its plan."""
    return json.loads(benchmark.call(sys.executable, "-c", DIGESTS).stdout)


@pytest.fixture(scope="module")
def planned(tmp_path_factory: pytest.TempPathFactory) -> tuple[Benchmark, dict[str, str]]:
    """A benchmark of several workloads, and the digests of its plans."""
    folder = tmp_path_factory.mktemp("planned")
    benchmark = new_benchmark(folder / "benchmark", folder)
    benchmark.configure(suites=[*SUITES, VARIANT])
    digests = digests_in(benchmark)
    assert digests.keys() == EVERY
    return benchmark, digests


@pytest.fixture
def again(planned: tuple[Benchmark, dict[str, str]]) -> Callable[..., set[str]]:
    """Which runs have another plan after files were changed, as "suite system".

    A change is a text to append, or one to replace and another.
    """
    benchmark, digests = planned
    before: dict[Path, str | None] = {}

    def plan(**changed: str | tuple[str, str]) -> set[str]:
        for name, change in changed.items():
            path = benchmark.folder / "workflow" / name
            before[path] = path.read_text() if path.exists() else None
            path.parent.mkdir(exist_ok=True)
            if isinstance(change, str):
                path.write_text((before[path] or "") + change)
            else:
                assert change[0] in before[path]
                path.write_text(before[path].replace(*change))
        now = digests_in(benchmark)
        return {run for run in EVERY if now[run] != digests[run]}

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
    launch = ("accumulates: true\n", "accumulates: true\nlaunch: [-O, -m, torch.distributed.run]\n")
    assert again(**{"systems/pytorch/system.yaml": launch}) == of("pytorch")


def test_a_new_workload_and_a_new_system_run_nothing_again(again, planned):
    workflow = planned[0].folder / "workflow"
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
