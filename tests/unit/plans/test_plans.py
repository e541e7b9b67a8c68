"""Plans: what decides a run changes its digest, and nothing else does."""

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from reperf.builds import build_for
from reperf.config import load_report
from reperf.layout import ROOT
from reperf.plans.plan_files import MadePlan, ReportPlan, SetPlan, SuitePlan
from reperf.plans.planning import Plans
from reperf.plans.run_plan import RunPlan
from reperf.systems import load_systems, workloads
from reperf.systems.workloads import load_workloads

from tests.helpers.other_root import forget, use_root
from tests.helpers.refusal import refused_in_one_line
from tests.helpers.small_benchmark import SMALL

SUITE = SMALL["suites"][0]
CLUSTER = {"nodes": 2, "devices_per_node": 4, "variables": {"NCCL_DEBUG": "INFO"}}


def digests(**changes: object) -> dict[str, str]:
    """A run's folder -> the digest of its plan, of the small report with some keys changed."""
    runs = Plans(load_report(SMALL | changes)).runs
    return {folder: plan.digest for folder, plan in runs.items()}


def in_suite(**changes: object) -> dict[str, object]:
    return {"suites": [SUITE | changes, *SMALL["suites"][1:]]}


def data(**changes: object) -> dict[str, object]:
    return {"data": SMALL["data"] | changes}


def test_equal_content_is_an_equal_file():
    one, other = Plans(load_report(SMALL)), Plans(load_report(json.loads(json.dumps(SMALL))))
    assert one.whole.text == other.whole.text
    for named in ("runs", "suites"):
        texts = [[plan.text for plan in getattr(all_, named).values()] for all_ in (one, other)]
        assert texts[0] == texts[1]


def test_runs_train_repeat_by_repeat_in_an_order_of_the_seed():
    report = in_suite(repeats=5, topologies=["1n1g", "1n2g", "1n4g"])

    def order(**changes: object) -> list[str]:
        turns = Plans(load_report(SMALL | report | changes)).turns
        assert sorted(turns.values()) == [*range(1, len(turns) + 1)]
        return sorted(turns, key=turns.__getitem__)

    repeats = [int(folder.rpartition("/")[2]) for folder in order()]
    assert repeats == sorted(repeats)
    # A B B A, and a new order after it.
    cells = [
        [folder.rpartition("/")[0] for folder in order() if folder.endswith(f"/{repeat}")]
        for repeat in range(1, 6)
    ]
    assert cells[1] != cells[0]
    assert cells[1][::-1] == [cell for cell in cells[0] if cell in cells[1]]
    assert cells[3][::-1] == cells[2]
    assert len({tuple(cells[repeat]) for repeat in (1, 2, 4)}) > 1
    assert order() == order()
    assert order() != order(seed=2)


def test_only_plans_that_have_changed_are_written(tmp_path: Path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    plans = Plans(load_report(SMALL))
    plans.write()
    written = [*map(str, Path().rglob("plan.json")), *map(str, Path().rglob("config.json"))]
    assert {"results/plan.json", *(f"{folder}/plan.json" for folder in plans.runs)} < {*written}
    times = {path: Path(path).stat().st_mtime_ns for path in written}
    first = f"{next(iter(plans.runs))}/plan.json"
    Path(first).write_text("{}")
    plans.write()
    changed = [path for path, time in times.items() if Path(path).stat().st_mtime_ns != time]
    assert changed == [first]


def test_a_plan_is_read_as_it_was_written(tmp_path: Path):
    for plan in Plans(load_report(SMALL)).runs.values():
        (tmp_path / "plan.json").write_text(plan.text)
        read = RunPlan.read(tmp_path / "plan.json")
        assert (read, read.digest, read.text) == (plan, plan.digest, plan.text)


def test_each_build_of_a_system_has_a_plan_and_its_own_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "nightly.txt").write_text("torch==9.9\n")
    named = (
        {"lock": "nightly.txt", "label": "nightly"},
        {"image": "me/torch:1", "label": "image"},
        {"image": "me/torch:2", "label": "image-2"},
    )
    systems = ["pytorch", *({"system": "pytorch"} | one for one in named)]
    plans = Plans(load_report(SMALL | in_suite(systems=systems, repeats=1)))
    builds = {
        plan.run.label: plan.build for plan in plans.runs.values() if plan.run.suite == "small"
    }
    assert len({build.folder for build in builds.values()}) == 4
    assert len({build.id for build in plans.named_builds.values()}) == 3
    plans.write()
    for folder, plan in plans.builds.items():
        assert MadePlan.read(folder / "plan.json").build is plan.build
    before = builds["nightly"]
    (tmp_path / "nightly.txt").write_text("torch==9.10\n")
    build_for.cache_clear()
    after = Plans(load_report(SMALL | in_suite(systems=systems, repeats=1))).runs
    assert before not in [plan.build for plan in after.values()]


JUNK = {
    "missing": None,
    "empty": b"",
    "another key": b'{"other": 1}',
    "a list": b"[]",
    "null": b"null",
    "cut": b"{",
    "no text": b"\xff\0",
    "deep": b"[" * 99_999,
    "no run": b'{"run": {"suite": 1}}',
}
READERS = {
    "results/runs/a/b/1n1g/1/plan.json": RunPlan.read,
    "results/suites/a/plan.json": lambda _: SuitePlan.of("a"),
    "results/plan.json": ReportPlan.read,
    "data/a/plan.json": SetPlan.read,
    ".images/a/plan.json": MadePlan.read,
}


@pytest.mark.parametrize("path", READERS)
@pytest.mark.parametrize("content", JUNK.values(), ids=JUNK)
def test_what_is_no_plan_is_refused_in_one_line(
    tmp_path: Path, monkeypatch, path: str, content: bytes | None
):
    monkeypatch.chdir(tmp_path)
    Path(path).parent.mkdir(parents=True)
    if content is not None:
        Path(path).write_bytes(content)
    with refused_in_one_line(f"{path}: "):
        READERS[path](path)


CLUSTERS = [CLUSTER | {"variables": more} for more in ({}, {"NCCL_DEBUG": "WARN"}, {"A": "1"})]


@pytest.mark.parametrize(
    ("changes", "changed"),
    [
        ({"title": "another"}, "none"),
        ({"window": {"warmup": 1, "measured": 3}}, "none"),
        ({"time_limit": 60}, "none"),
        (data(workers=1), "none"),
        (in_suite(baseline="1n2g"), "none"),
        ({"suites": SMALL["suites"][::-1]}, "none"),
        ({"seed": 7}, "small small-synthetic"),
        ({"threads_per_device": 2}, "small small-synthetic"),
        ({"cluster": CLUSTER}, "small small-synthetic"),
        (in_suite(batch_size=4), "small"),
        (in_suite(batch_size="largest"), "small"),
        (in_suite(precision="amp"), "small"),
        (data(parts=2), "small"),
        (data(seed=7), "small"),
    ],
    ids=str,
)
def test_what_decides_how_a_run_trains_and_nothing_else_changes_its_plan(changes, changed):
    before, after = digests(), digests(**changes)
    for folder in before:
        decided = folder.split("/")[2] in changed.split()
        assert (after[folder] != before[folder]) == decided, folder


def test_a_clusters_variables_are_in_the_plans():
    of_clusters = [digests(cluster=cluster) for cluster in (CLUSTER, *CLUSTERS)]
    found = [digest for every in of_clusters for digest in every.values()]
    assert len(found) == len(set(found))
    turned = CLUSTER | {"variables": {"B": "1", "A": "1"}}
    assert digests(cluster=turned) == digests(cluster=turned | {"variables": {"A": "1", "B": "1"}})


SYSTEMS = {
    "resnet50": ["pytorch", "ngc-pytorch", "tensorflow2", "ngc-tensorflow1", "oneflow", "mxnet"],
    "vgg16": ["pytorch", "ngc-pytorch", "tensorflow2", "ngc-tensorflow1", "paddlepaddle"],
    "alexnet": ["pytorch", "ngc-pytorch", {"system": "pytorch", "variants": "compile"}],
}
SUITES = [
    SMALL["suites"][1] | {"name": name, "workload": name, "precision": "fp32", "systems": systems}
    for name, systems in SYSTEMS.items()
]
SUITES = [suite | {"shape": {"image_size": 64}} for suite in SUITES]


@pytest.fixture(scope="module")
def copied(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What plans are made from, in another place."""
    folder = tmp_path_factory.mktemp("copied")
    for name in ("workflow/systems", "workflow/trainers", "workflow/workloads", "envs"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    return folder


@pytest.fixture
def changed_by(copied: Path, monkeypatch) -> Iterator[Callable[..., set[str]]]:
    """The runs whose plans change with some files, as "workload entry".

    A change is a text to append, or one to replace and another.
    """
    before: dict[Path, str | None] = {}

    def edit(file: Path, change: str | tuple[str, str]) -> None:
        file.parent.mkdir(exist_ok=True)
        before[file] = file.read_text() if file.exists() else None
        text = before[file] or ""
        edited = text + change if isinstance(change, str) else text.replace(*change)
        assert edited != text
        file.write_text(edited)

    def changed(**edits: str | tuple[str, str]) -> set[str]:
        monkeypatch.chdir(ROOT)
        here = digests(suites=SUITES)
        for name, change in edits.items():
            edit(copied / name, change)
        with monkeypatch.context() as patched:
            patched.chdir(copied)
            use_root(patched, copied)
            patched.setattr(workloads, "WORKLOADS", copied / "workflow/workloads")
            load_workloads.cache_clear()
            there = digests(suites=SUITES)
        forget()
        load_workloads.cache_clear()
        assert here.keys() == there.keys()
        differ = [folder.split("/") for folder in here if here[folder] != there[folder]]
        return {f"{suite} {entry}" for _, _, suite, entry, *_ in differ}

    yield changed
    for file, text in before.items():
        file.unlink() if text is None else file.write_text(text)


def of(systems: str, *workloads: str) -> set[str]:
    """The runs of some systems, of some workloads or of all."""
    names = systems.split()
    return {
        f"{workload} {name}"
        for workload in workloads or SYSTEMS
        for name in (
            one if isinstance(one, str) else "pytorch+compile" for one in SYSTEMS[workload]
        )
        if name.partition("+")[0] in names
    }


TORCH = "pytorch ngc-pytorch"
EVERY = of(" ".join(one for one in load_systems()))
TRAINERS = {
    "frameworks/torch/plain.py": of(TORCH, "vgg16", "alexnet"),
    "frameworks/torch/backend.py": of(TORCH),
    "frameworks/tensorflow/vgg16.py": of("tensorflow2 ngc-tensorflow1", "vgg16"),
    "frameworks/oneflow/backend.py": of("oneflow"),
    "recipes/vgg16.py": {run for run in EVERY if run.startswith("vgg16")},
    "launchers/horovod.py": of("ngc-tensorflow1 mxnet"),
    "contract/steplog.py": EVERY,
}
"""What is edited -> which runs stand on it."""
SYSTEM = "workflow/systems/pytorch/system.yaml"
TORCHS = "workflow/trainers/frameworks/torch/framework.yaml"
COMPILE = "compile: {about: torch.compile, flags: [--compile]"
LAUNCH = "accumulates: true\n", "accumulates: true\nlaunch: [-O, -m, torch.distributed.run]\n"


def test_comments_and_titles_change_no_plan_wherever_it_is_made(changed_by):
    edits = dict.fromkeys((f"workflow/trainers/{name}" for name in TRAINERS), "\n# edited\n")
    edits[SYSTEM] = ("DistributedDataParallel over", "By")
    edits["workflow/workloads/resnet50.yaml"] = ("title: ", "title: Another ")
    edits["workflow/workloads/vgg16.yaml"] = "\n# edited\n"
    assert changed_by(**edits) == set()


def test_a_new_workload_and_a_new_system_change_no_plan(changed_by):
    ninth = {"title": "Ninth", "framework": "torch", "about": "one more", "shares": "pytorch"}
    new = {
        "workflow/trainers/recipes/vgg19.py": "# a recipe\n",
        "workflow/trainers/frameworks/torch/vgg19.py": "# a model\n",
        "workflow/systems/pytorch/vgg19.py": "# a program\n",
        "workflow/systems/ninth/system.yaml": json.dumps(ninth),
    }
    assert changed_by(**new) == set()


@pytest.mark.parametrize(
    ("file", "change", "runs"),
    [
        *((f"workflow/trainers/{name}", "\nEDITED = 1\n", runs) for name, runs in TRAINERS.items()),
        ("envs/pytorch.txt", "\n", of("pytorch")),
        ("envs/mxnet.txt", "more==1.0\n", of("mxnet")),
        (SYSTEM, LAUNCH, of("pytorch")),
        (TORCHS, ("- -m\n", "- -O\n  - -m\n"), of(TORCH)),
        (TORCHS, (COMPILE, COMPILE[:-1] + ", --unpadded]"), {"alexnet pytorch+compile"}),
    ],
)
def test_an_edit_changes_the_plans_of_the_runs_that_stand_on_it(changed_by, file, change, runs):
    assert changed_by(**{file: change}) == runs
