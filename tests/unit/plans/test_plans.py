"""Plans: what decides a run changes its digest, and nothing else does."""

import json
from itertools import product
from pathlib import Path

import pytest
from reperf.builds import build_for
from reperf.config import load_report
from reperf.plans import run_plan
from reperf.plans.plan_files import MadePlan, SetPlan, SuitePlan
from reperf.plans.planning import Plans
from reperf.plans.run_plan import RunPlan
from reperf.systems import TRAINERS, load_systems

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


def test_equal_content_is_an_equal_file_and_is_read_as_it_was_written(tmp_path: Path):
    one, other = Plans(load_report(SMALL)), Plans(load_report(json.loads(json.dumps(SMALL))))
    assert one.whole.text == other.whole.text
    for named in ("runs", "suites"):
        texts = [[plan.text for plan in getattr(all_, named).values()] for all_ in (one, other)]
        assert texts[0] == texts[1]
    for plan in one.runs.values():
        (tmp_path / "plan.json").write_text(plan.text)
        read = RunPlan.read(tmp_path / "plan.json")
        assert (read, read.digest, read.text) == (plan, plan.digest, plan.text)


def test_runs_train_repeat_by_repeat_in_an_order_of_the_seed():
    report = in_suite(repeats=5, topologies=["1n1g", "1n2g", "1n4g"])

    def order(**changes: object) -> list[str]:
        turns = Plans(load_report(SMALL | report | changes)).turns
        assert sorted(turns.values()) == [*range(1, len(turns) + 1)]
        return sorted(turns, key=turns.__getitem__)

    # A B B A, and a new order after it.
    one, two, three, four, five = (
        [folder for folder in order() if folder.endswith(f"/{repeat}")] for repeat in range(1, 6)
    )
    assert order() == [*one, *two, *three, *four, *five] == order() != order(seed=2)
    cells = [[folder[:-2] for folder in turn] for turn in (one, two, three, four, five)]
    one, two, three, four, five = cells
    assert two[::-1] == [cell for cell in one if cell in two] != two
    assert four[::-1] == three
    assert len({tuple(two), tuple(three), tuple(five)}) > 1


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


def test_each_build_of_a_system_has_a_plan_and_its_own_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    named = (
        {"lock": "nightly.txt", "label": "nightly"},
        {"image": "me/torch:1", "label": "image"},
        {"image": "me/torch:2", "label": "image-2"},
    )
    systems = ["pytorch", *({"system": "pytorch"} | one for one in named)]

    def planned(lock: str) -> Plans:
        (tmp_path / "nightly.txt").write_text(lock)
        build_for.cache_clear()
        return Plans(load_report(SMALL | in_suite(systems=systems, repeats=1)))

    plans = planned("torch==9.9\n")
    builds = {plan.run.label: plan.build for plan in plans.runs.values()}
    assert (
        len({plan.build.folder for plan in plans.runs.values() if plan.run.suite == "small"}) == 4
    )
    assert len({build.id for build in plans.named_builds.values()}) == 3
    plans.write()
    for folder, plan in plans.builds.items():
        assert MadePlan.read(folder / "plan.json").build is plan.build
    after = planned("torch==9.10\n").runs.values()
    assert builds["nightly"] not in [plan.build for plan in after]


JUNK = (None, b"", b'{"other": 1}', b"[]", b"null", b"{", b"\xff\0", b"[" * 99_999, b'{"run": 1}')
READERS = {
    "results/runs/a/b/1n1g/1/plan.json": RunPlan.read,
    "results/suites/a/plan.json": lambda _: SuitePlan.of("a"),
    "data/a/plan.json": SetPlan.read,
}


@pytest.mark.parametrize("path", READERS)
@pytest.mark.parametrize("content", JUNK)
def test_what_is_no_plan_is_refused_in_one_line(tmp_path: Path, monkeypatch, path, content):
    monkeypatch.chdir(tmp_path)
    Path(path).parent.mkdir(parents=True)
    if content is not None:
        Path(path).write_bytes(content)
    with refused_in_one_line(f"{path}: "):
        READERS[path](path)


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


@pytest.mark.filterwarnings("ignore:Pydantic serializer")
@pytest.mark.parametrize("field", RunPlan.model_fields)
def test_all_of_a_plan_but_what_stands_aside_decides_it(field):
    plan = next(iter(Plans(load_report(SMALL)).runs.values()))
    other = RunPlan.model_construct(**dict(plan) | {field: None if field == "aside" else "other"})
    assert (other.digest == plan.digest) == (field == "aside")


def test_a_clusters_variables_are_in_the_plans_in_any_order():
    given = ({"NCCL_DEBUG": "INFO"}, {}, {"NCCL_DEBUG": "WARN"}, {"A": "1", "B": "1"})
    found = [{*digests(cluster=CLUSTER | {"variables": one}).values()} for one in given]
    assert len(set.union(*found)) == sum(map(len, found))
    turned = CLUSTER | {"variables": {"B": "1", "A": "1"}}
    assert {*digests(cluster=turned).values()} == found[-1]


TORCH = ("pytorch", "ngc-pytorch")
ALL = (*TORCH, "tensorflow2", "ngc-tensorflow1", "oneflow", "mxnet")
WORKLOADS = ("resnet50", "vgg16", "alexnet")


@pytest.mark.parametrize(
    ("file", "systems", "workloads"),
    [
        ("frameworks/torch/plain.py", TORCH, ("vgg16", "alexnet")),
        ("frameworks/torch/backend.py", TORCH, WORKLOADS),
        ("frameworks/tensorflow/vgg16.py", ("tensorflow2", "ngc-tensorflow1"), ("vgg16",)),
        ("frameworks/oneflow/backend.py", ("oneflow",), WORKLOADS),
        ("recipes/vgg16.py", ALL, ("vgg16",)),
        ("launchers/horovod.py", ("ngc-tensorflow1", "mxnet"), WORKLOADS),
        ("contract/steplog.py", ALL, WORKLOADS),
    ],
)
def test_an_edit_of_code_changes_the_plans_of_the_runs_that_stand_on_it(file, systems, workloads):
    """A new workload, or a new system, is code on which none of these stands."""
    for name, workload in product(ALL, WORKLOADS):
        system = load_systems()[name]
        if system.trains(workload):
            stands = TRAINERS / file in system.code(workload)
            assert stands == (name in systems and workload in workloads), (name, workload)


COMPILE = load_systems()["pytorch"].variants["compile"]
FASTER = COMPILE.model_copy(update={"flags": (*COMPILE.flags, "--unpadded")})


@pytest.mark.parametrize(
    ("changes", "entries"),
    [
        ({"title": "Another", "about": "another"}, set()),
        ({"launch": ("-O", "-m", "torch.distributed.run")}, {"pytorch", "pytorch+compile"}),
        ({"variants": {"compile": FASTER}}, {"pytorch+compile"}),
    ],
)
def test_what_a_system_says_changes_the_plans_of_its_runs_alone(monkeypatch, changes, entries):
    systems = ["pytorch", {"system": "pytorch", "variants": "compile"}, "mxnet"]
    asked = in_suite(systems=systems)
    before, known = digests(**asked), dict(load_systems())
    known["pytorch"] = known["pytorch"].model_copy(update=changes)
    monkeypatch.setattr(run_plan, "load_systems", lambda: known)
    after = digests(**asked)
    differ = {folder.split("/")[3] for folder in before if before[folder] != after[folder]}
    assert differ == entries
