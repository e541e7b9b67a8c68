"""Plans: what decides a run changes its digest, and nothing else does."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from reperf.config import load_report
from reperf.plans.image_plan import ImagePlan
from reperf.plans.planning import Plans
from reperf.plans.report_plan import ReportPlan
from reperf.plans.run_plan import RunPlan
from reperf.plans.set_plan import SetPlan
from reperf.plans.suite_plan import SuitePlan
from reperf.systems import ROOT

from tests.helpers.refusal import refused_in_one_line
from tests.helpers.small_benchmark import SMALL

BUILT = shutil.ignore_patterns("__pycache__", "*.egg-info")
SYSTEM = "workflow/systems/pytorch/system.yaml"
ENGINE = "workflow/trainers/frameworks/torch/backend.py"
PRINT_DIGESTS = """
import json, sys
from reperf.config import load_report
from reperf.plans.planning import Plans
plans = Plans(load_report(json.loads(sys.argv[1])))
print(json.dumps({folder: plan.digest for folder, plan in plans.runs.items()}))
"""
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
    assert one.texts == other.texts
    assert [plan.text for plan in one.runs.values()] == [plan.text for plan in other.runs.values()]


def test_only_plans_that_have_changed_are_written(tmp_path: Path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    plans = Plans(load_report(SMALL))
    plans.write()
    assert {path: Path(path).read_text() for path in plans.texts} == plans.texts
    first, *others = plans.runs
    written = [*plans.texts, *(f"{folder}/plan.json" for folder in plans.runs)]
    times = {path: Path(path).stat().st_mtime_ns for path in written}
    Path(first, "plan.json").write_text("{}")
    plans.write()
    changed = [path for path, time in times.items() if Path(path).stat().st_mtime_ns != time]
    assert changed == [f"{first}/plan.json"]
    assert others


def test_a_plan_is_read_as_it_was_written(tmp_path: Path):
    for plan in Plans(load_report(SMALL)).runs.values():
        (tmp_path / "plan.json").write_text(plan.text)
        read = RunPlan.read(tmp_path / "plan.json")
        assert (read, read.digest, read.text) == (plan, plan.digest, plan.text)


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
    ".images/a/plan.json": ImagePlan.read,
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


@pytest.mark.parametrize(
    "changes",
    [
        {"title": "another"},
        {"window": {"warmup": 1, "measured": 3}},
        {"time_limit": 60},
        data(workers=1),
        in_suite(baseline="1n2g"),
        {"suites": SMALL["suites"][::-1]},
    ],
    ids=str,
)
def test_what_does_not_decide_how_a_run_trains_leaves_its_plan(changes: dict):
    assert digests(**changes) == digests()


@pytest.mark.parametrize(
    ("changes", "changed"),
    [
        ({"seed": 7}, "both"),
        ({"threads_per_device": 2}, "both"),
        ({"cluster": CLUSTER}, "both"),
        (in_suite(batch_size=4), "small"),
        (in_suite(batch_size="largest"), "small"),
        (in_suite(precision="amp"), "small"),
        (data(parts=2), "small"),
        (data(seed=7), "small"),
    ],
    ids=str,
)
def test_what_decides_how_a_run_trains_changes_its_plan(changes: dict, changed: str):
    before, after = digests(), digests(**changes)
    for folder in before:
        decided = changed == "both" or folder.startswith(f"results/runs/{changed}/")
        assert (after[folder] != before[folder]) == decided, folder


@pytest.mark.parametrize(
    "variables", [{}, {"NCCL_DEBUG": "WARN"}, {"NCCL_DEBUG": "INFO", "A": "1"}]
)
def test_a_clusters_variables_are_in_the_plans(variables: dict):
    one = digests(cluster=CLUSTER)
    other = digests(cluster=CLUSTER | {"variables": variables})
    assert not set(one.values()) & set(other.values())


@pytest.fixture(scope="module")
def copied(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What plans are made from, in another place."""
    folder = tmp_path_factory.mktemp("copied")
    for name in ("workflow", "envs", "data/published"):
        shutil.copytree(ROOT / name, folder / name, ignore=BUILT)
    return folder


@pytest.fixture
def planned_in(copied: Path) -> Callable[..., dict[str, str]]:
    """The digests as a process in the copied folder gives them, where some texts are edited.

    A variant is added to what the small report asks for.
    """

    def planned(edits: dict[str, Callable[[str], str]]) -> dict[str, str]:
        before = {name: (copied / name).read_text() for name in edits}
        try:
            for name, edit in edits.items():
                (copied / name).write_text(edit(before[name]))
                assert (copied / name).read_text() != before[name]
            answer = subprocess.run(
                [sys.executable, "-c", PRINT_DIGESTS, json.dumps(in_suite(systems=SYSTEMS) | REST)],
                cwd=copied,
                env={**os.environ, "PYTHONPATH": str(copied / "workflow")},
                check=True,
                capture_output=True,
                text=True,
            )
        finally:
            for name, text in before.items():
                (copied / name).write_text(text)
        return json.loads(answer.stdout)

    return planned


SYSTEMS = ["pytorch", {"system": "pytorch", "variants": "compile"}]
REST = {key: value for key, value in SMALL.items() if key != "suites"}


def described(change: Callable[[dict], None]) -> Callable[[str], str]:
    """An edit of a YAML file."""

    def edit(text: str) -> str:
        content = yaml.safe_load(text)
        change(content)
        return yaml.safe_dump(content, sort_keys=False)

    return edit


def reworded(system: dict) -> None:
    system["about"] += " More of it."
    system["title"] += " too"


def relaunched(system: dict) -> None:
    system["launch"].insert(0, "-u")


def flagged(system: dict) -> None:
    system["variants"]["compile"].setdefault("flags", []).append("--more")


def surrounded(system: dict) -> None:
    system["variants"]["compile"].setdefault("environment", {})["MORE"] = "1"


EDITS = {
    "nothing": ({}, ""),
    "words of the description": ({SYSTEM: described(reworded)}, ""),
    "a comment": ({ENGINE: lambda text: f"# a comment\n\n{text}\n# another\n"}, ""),
    "another system": ({"envs/mxnet.txt": lambda text: f"{text}more==1.0\n"}, ""),
    "a line of the trainer": ({ENGINE: lambda text: f"{text}\nMORE = 1\n"}, "pytorch"),
    "how it is launched": ({SYSTEM: described(relaunched)}, "pytorch"),
    "a byte of the lock": ({"envs/pytorch.txt": lambda text: f"{text}\n"}, "pytorch"),
    "a variant's flags": ({SYSTEM: described(flagged)}, "compile"),
    "a variant's environment": ({SYSTEM: described(surrounded)}, "compile"),
}


@pytest.mark.parametrize(("edits", "changed"), EDITS.values(), ids=EDITS)
def test_an_edit_changes_the_plans_of_the_runs_that_it_decides(
    planned_in, monkeypatch, edits: dict, changed: str
):
    monkeypatch.chdir(ROOT)
    before, after = digests(**in_suite(systems=SYSTEMS)), planned_in(edits)
    assert before.keys() == after.keys()
    assert sum("compile" in folder for folder in before) == 4
    for folder in before:
        decided = bool(changed) and changed in folder
        assert (before[folder] != after[folder]) == decided, folder
