"""Archives whose parts were changed to fit each other, and still say two things."""

import json
import re
import shutil
from collections.abc import Callable
from contextlib import chdir
from importlib.metadata import version
from pathlib import Path

import pytest
from reperf.archive.container import MANIFEST, Member, verified, write
from reperf.archive.contents import CELL_LIST, files_of_systems
from reperf.archive.names import METADATA
from reperf.archive.rebuild import make_results, rebuild
from reperf.builds import build_of
from reperf.config import load_report
from reperf.config.known_hardware import Hardware
from reperf.errors import ReperfError
from reperf.files import sha256
from reperf.plans.run_plan import RunPlan
from reperf.systems import ROOT
from reperf.training.record import Environment, RunRecord

from tests.helpers.refusal import refused_in_one_line
from tests.unit.archive.suites import (
    PINS,
    RUN,
    RUNS,
    SUITE,
    Change,
    archive_suite,
    entity,
    in_json,
    swap,
)

pytestmark = pytest.mark.usefixtures("drawn_once")

Edit = Callable[[Path], object]
SYSTEM, TRAINERS = "workflow/systems/pytorch/system.yaml", "workflow/trainers"
RECIPE = f"{TRAINERS}/recipes/resnet50.py"
LATER = "2026-01-02T03:06:05.000+00:00"


def forge(path: Path, edit: Edit) -> Path:
    """An archive that somebody has edited, and whose tables, figures and manifest fit the edits."""
    folder = path.with_name("forge")
    with verified(path) as opened:
        opened.extractall(folder)
    edit(folder)
    (folder / MANIFEST).unlink()
    with chdir(folder):
        report = load_report(json.loads(Path("config.json").read_text()))
        make_results(report, CELL_LIST.validate_json(Path("cells.json").read_text()))
    files = {str(file.relative_to(folder)): file for file in folder.rglob("*") if file.is_file()}
    forgery = path.with_name("forgery.zip")
    write(forgery, [Member.of_file(name, file) for name, file in files.items()])
    shutil.rmtree(folder)
    return forgery


def of_file(name: str, change: Change) -> Edit:
    return lambda folder: (folder / name).write_bytes(change((folder / name).read_bytes()))


def of_crate(change: Change) -> Edit:
    return of_file(METADATA, change)


def of_cells(change: Callable[[list], object], *lost: str) -> Edit:
    """Other cells; some runs are not there."""

    def edit(folder: Path) -> None:
        of_file("cells.json", in_json(change))(folder)
        for run in lost:
            shutil.rmtree(folder / run)

    return edit


def of_config(change: Callable[[dict], object], *more: Edit) -> Edit:
    """A suite that is asked for otherwise, and what goes with it."""

    def edit(folder: Path) -> None:
        of_file("config.json", in_json(lambda config: change(config["suites"][0])))(folder)
        for one in more:
            one(folder)

    return edit


def of_record(*places: str, **update: object) -> Edit:
    """A run's record, or those in some places of its folder, that say otherwise."""

    def edit(folder: Path) -> None:
        for path in (folder / RUN / place / "run.json" for place in places or (".", "tries/1")):
            RunRecord.read(path).model_copy(update=update).write(path)

    return edit


def of_plan(**update: object) -> Edit:
    """A run's plan, that of its try, and both records, changed alike."""

    def edit(folder: Path) -> None:
        for place in (".", "tries/1"):
            path = folder / RUN / place / "plan.json"
            plan = RunPlan.model_validate(RunPlan.read(path).model_dump() | update)
            path.write_text(plan.text)
        of_record(plan=plan.digest)(folder)

    return edit


def of_an_earlier_version(folder: Path) -> None:
    """With another trainer: earlier versions had digests of other things."""
    of_file(RECIPE, swap("import", "import os\nimport"))(folder)
    for path in folder.glob(f"{RUNS}/*/*/run.json"):
        RunRecord.read(path).model_copy(update={"record_version": 6}).write(path)


OTHER_PACKAGES = Environment(
    lock="envs/pytorch.txt",
    lock_sha256=sha256(ROOT / "envs/pytorch.txt"),
    python="3.11",
    packages={"numpy": "9.9"},
)


DAY = '"2026-01-02T03:06:05.000+00:00"'
OTHER_TRAINER = of_file(RECIPE, swap("import", "import os\nimport"))
FORGERIES = {
    "without the slow run": (
        of_cells(lambda cells: cells[0]["runs"].pop(0), RUN),
        "cells.json: 1.runs.1.repeat: got 2; allowed: 1, as config.json asks",
    ),
    "other images": (
        of_config(
            lambda suite: suite["shape"].update(image_size=320),
            of_file("cells.json", swap('"image_size": 224', '"image_size": 320')),
        ),
        "RUN/run.json: image_size is 224 by the run record, 320 by the configuration",
    ),
    "another command": (
        of_record(command=("python", "fast.py")),
        "RUN/run.json: command.1: got null; allowed: ",
    ),
    "another window": (
        of_config(lambda suite: suite["window"].update(measured=80)),
        "RUN/run.json: aside.window.2: got 120; allowed: 100, as config.json asks",
    ),
    "a failure that its log does not know": (
        of_record(status="failed", reason="slow"),
        'RUN/run.json: status: got "failed"; allowed: "ok", as train.log beside it says',
    ),
    "another end of its try": (
        of_record("tries/1", seconds=1.0),
        "RUN/run.json: seconds: got 60.0; allowed: 1.0, as the last of its tries has it",
    ),
    "another log of its try": (
        of_file(f"{RUN}/tries/1/train.log", swap("rank 0: done", "rank 0: gone")),
        'RUN/tries/1/run.json: log_sha256: got "DIGEST"; allowed: "DIGEST"',
    ),
    "another trainer": (
        OTHER_TRAINER,
        'RUN/run.json: trainer: got "DIGEST"; allowed: "DIGEST", as the archived trainers',
    ),
    "another trainer, and records called old": (
        of_an_earlier_version,
        "RUN/run.json: record_version: got 6; allowed: 7, as the digest of plan.json",
    ),
    "a trainer that nothing can read": (
        lambda folder: (folder / RECIPE).write_bytes(b"\xff"),
        "RUN/run.json: the archived trainer is not text: ",
    ),
    "other packages": (
        of_record(environment=OTHER_PACKAGES),
        f'RUN/run.json: packages.numpy: got "9.9"; allowed: "{PINS["numpy"]}", as the archived',
    ),
    "a run that nobody asked for": (
        lambda folder: shutil.copytree(folder / RUN, folder / RUNS / "1n4g/1"),
        "1n4g/1/plan.json: belongs to no run or log that config.json asks for",
    ),
    "without a part of the trainer": (
        lambda folder: (folder / TRAINERS / "frameworks/torch/resnet50.py").unlink(),
        f"{TRAINERS}/frameworks/torch/resnet50.py is not in it; its runs need it",
    ),
    "another end": (
        of_crate(in_json(lambda graph: entity(graph, f"#{RUN}").update(endTime=LATER))),
        f"#RUN.endTime: got {DAY}; allowed: {DAY.replace(':06:', ':05:')}",
    ),
}
"""One for each kind of check."""
MORE = {
    "one repeat twice": (
        of_cells(lambda cells: cells[0].update(runs=cells[0]["runs"][:1] * 2)),
        "cells.json: 1.runs.2.repeat: got 1; allowed: 2, as config.json asks",
    ),
    "measured, and called unsupported": (
        of_cells(lambda cells: cells[0].update(unsupported="no GPU"), RUN, f"{RUNS}/1n1g/2"),
        'cells.json: 1.unsupported: got "no GPU"; allowed: null, as config.json asks',
    ),
    "one record for two runs": (
        lambda folder: shutil.copy(folder / RUNS / "1n1g/2/run.json", folder / RUN),
        "RUN/run.json: repeat is 2 by the run record, 1 by the configuration",
    ),
    "another data set": (
        of_plan(data="5f" * 32),
        'RUN/run.json: data: got "DIGEST"; allowed: "DIGEST", as config.json asks',
    ),
    "less memory, sealed anew": (
        of_record(".", peak_memory_bytes=(1,)),
        "RUN/run.json: peak_memory_bytes.1: got 1; allowed: null, as train.log beside it",
    ),
    "an end before its beginning": (
        of_record(ended="2026-01-01T00:00:00.000+00:00"),
        "RUN/run.json: seconds: got 60.0; allowed: -",
    ),
    "without a try": (
        lambda folder: (folder / RUN / "tries/1").rename(folder / RUN / "tries/2"),
        "RUN/run.json: tries.1: got 2; allowed: 1, as the last of its tries has it",
    ),
    "another way to launch": (
        of_file(SYSTEM, swap("torch.distributed.run", "torch.fast")),
        'RUN/run.json: launch.2: got "torch.distributed.run"; allowed: "torch.fast", as',
    ),
    "another lock": (
        of_file("envs/pytorch.txt", swap("numpy==", "numpy==9.")),
        'RUN/run.json: lock_sha256: got "DIGEST"; allowed: "DIGEST", as the archived',
    ),
    "variables that no system asks for": (
        of_plan(variables={"FAST": "1"}),
        'RUN/run.json: variables.MKL_NUM_THREADS: got null; allowed: "1", as the archived',
    ),
    "a file that no run leaves": (
        lambda folder: (folder / RUN / "tries/1/more.py").write_text(""),
        "RUN/tries/1/more.py: belongs to no run or log that config.json asks for",
    ),
    "code that no run needs": (
        lambda folder: (folder / TRAINERS / "more.py").write_text("faster = True"),
        f"{TRAINERS}/more.py: belongs to no run or log that config.json asks for",
    ),
    "another day": (
        of_crate(swap(LATER, "2020-01-02T03:06:05.000+00:00")),
        f'@graph../.datePublished: got "2020-01-02T03:06:05.000+00:00"; allowed: {DAY}, as the',
    ),
    "a failure called complete": (
        of_crate(swap("org/FailedActionStatus", "org/CompletedActionStatus")),
        '1n2g/2.actionStatus: got "http://schema.org/CompletedActionStatus"; allowed: "http',
    ),
    "metadata of nothing": (
        of_crate(in_json(lambda graph: graph.update({"@graph": {"@id": "./"}}))),
        f"{METADATA}: @graph: got ",
    ),
}


@pytest.mark.parametrize(
    "name", [*FORGERIES, *(pytest.param(name, marks=pytest.mark.weekly) for name in MORE)]
)
def test_what_does_not_follow_is_refused_with_both_values(archived, name):
    edit, fault = (FORGERIES | MORE)[name]
    forgery = forge(archived, edit)
    with refused_in_one_line(f"{forgery}: ") as refusal:
        rebuild(forgery, Path("new"))
    assert fault in re.sub("[0-9a-f]{64}", "DIGEST", str(refusal.value)).replace(RUN, "RUN")


def test_the_trainer_is_not_taken_for_that_of_an_archive_unpacked_there_before(archived):
    forgery = forge(archived, OTHER_TRAINER)
    rebuild(archived, Path("new"))
    shutil.rmtree("new")
    with pytest.raises(ReperfError, match="trainer: got"):
        rebuild(forgery, Path("new"))


@pytest.mark.parametrize("build", ["lock", "image"])
def test_the_archived_code_of_every_system_has_its_digest(tmp_path, build):
    asked = {"suites": SUITE["suites"][:1], "systems": "all", "device": "cuda", "build": build}
    report = load_report(SUITE | asked)
    runs = [run for run in report.runs(report.suites[0]) if run.repeat == 1]
    assert {run.system for run in runs} >= {"pytorch", "ngc-mxnet"}
    for run in runs:
        root = tmp_path / run.system
        for name, file in files_of_systems([run], ROOT).items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(file, root / name)
        digests = {build_of(run, at).system.code_digest(run.workload) for at in (root, ROOT)}
        assert len(digests) == 1
        assert files_of_systems([run], root).keys() == files_of_systems([run], ROOT).keys()


def test_other_versions_of_libraries_are_no_forgery(archived):
    other = swap(f"numpy {version('numpy')}", "numpy 1.0")
    assert rebuild(forge(archived, of_file(METADATA, other)), Path("new"))


def test_what_the_gpus_decided_is_in_an_archive_and_before_that_in_its_cells(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    suite = SUITE["suites"][0] | {"systems": ["pytorch", "mxnet"]}
    report = load_report(SUITE | {"device": "cuda", "build": "lock", "suites": [suite]})
    decided = Hardware(locks={"pytorch": "volta"}, unfit={"mxnet": {"lock": "the GPU is new"}})
    path = archive_suite(report.model_copy(update={"hardware": decided}))
    assert rebuild(path, Path("new"))
    with verified(path) as opened:
        assert load_report(json.loads(opened.read("config.json"))).hardware == decided

    earlier = forge(path, of_file("config.json", in_json(lambda config: config.pop("hardware"))))
    assert rebuild(earlier, Path("earlier"))

    def measured_as_unsupported(cells: list) -> None:
        for cell in cells:
            cell["unsupported"] = "the GPU is new"

    with pytest.raises(ReperfError, match=r"volta\.txt: belongs to no run or log that"):
        rebuild(forge(earlier, of_cells(measured_as_unsupported)), Path("forged"))
