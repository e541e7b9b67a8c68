"""The archive of a suite: all that its numbers came from, and the numbers made again from it."""

import io
import json
import re
import shutil
import socket
from importlib.metadata import version
from pathlib import Path

import jsonschema
import pandas as pd
import pytest
from reperf import __version__
from reperf.archive.container import verified
from reperf.archive.contents import CELL_LIST, write_archive
from reperf.archive.descriptions import pages
from reperf.archive.rebuild import rebuild, verify
from reperf.builds import build_of
from reperf.cli import main
from reperf.commands.config import schema_of
from reperf.config import load_report
from reperf.config.site import Hardware
from reperf.drawing.figures import draw_suite
from reperf.errors import ReperfError
from reperf.layout import figures_of, tables_of
from reperf.member_names import CHECK, METADATA, PAGE, README
from reperf.plans.plan_files import training_files
from reperf.records.run_record import RunRecord
from reperf.tables import read_measurements, read_summary

from tests.helpers.other_root import forget, use_root
from tests.helpers.refusal import refused_in_one_line
from tests.helpers.step_logs import step_log
from tests.unit.archive.suites import (
    GPUS_ONLY,
    RUN,
    RUNS,
    SUITE,
    archive_suite,
    contents_of,
    entity,
    in_json,
    leave_suite,
    rewritten,
    swap,
)

pytestmark = pytest.mark.usefixtures("drawn_once")

SUMMARY = tables_of("resnet50")[1]
SYSTEM = "workflow/systems/pytorch/system.yaml"
TORCHS = "workflow/trainers/frameworks/torch/framework.yaml"


def made_by(version: str):
    return swap(f'"version": "{__version__}"', f'"version": "{version}"')


@pytest.mark.parametrize(
    "path", ["/dev/zero", "/etc/hostname", "..", "../secret.log", "from/..", "from", "results/runs"]
)
def test_nothing_outside_the_archive_is_measured(archived, path):
    Path("secret.log").write_text("\n".join(step_log()))
    of_path = in_json(lambda config: config["suites"][0].update({"from": [{"path": path}]}))
    with pytest.raises(ReperfError, match=r"is no member; allowed: |allowed: a path that ends"):
        rebuild(rewritten(archived, {"config.json": of_path}), Path("new"))
    assert not Path("new").exists()


def test_tables_and_figures_rebuild_to_the_byte_from_the_archive_alone(archived, monkeypatch):
    def refuse(*_: object) -> None:
        raise AssertionError("a rebuild must not ask the network")

    monkeypatch.setattr(socket, "socket", refuse)
    monkeypatch.setattr("reperf.drawing.figures.draw_suite", draw_suite)  # anew
    made = rebuild(archived, Path("new/folder"))
    made_again = [*tables_of("resnet50"), CHECK, *figures_of("resnet50"), README, PAGE]
    assert made.same == made_again
    assert not made.differ
    for name, content in contents_of(archived).items():
        assert Path("new/folder", name).read_bytes() == content, name


def test_the_same_runs_give_the_same_archive(archived, report):
    assert archive_suite(report).read_bytes() == archived.read_bytes()


def test_it_holds_what_the_numbers_came_from(archived):
    contents = contents_of(archived)
    names = contents.keys()
    runs = [f"{RUNS}/1n{gpus}g/{repeat}" for gpus in (1, 2) for repeat in (1, 2)]
    assert names >= {f"{run}/{name}" for run in runs for name in ("train.log", "run.json")}
    assert names >= {"envs/pytorch.txt", "workflow/workloads/resnet50.yaml", SYSTEM, TORCHS}
    parts = ("train.py", "contract/steplog.py", "recipes/resnet50.py")
    assert names >= {f"workflow/trainers/{part}" for part in parts}
    assert not any("vgg16" in name for name in names)
    assert load_report(json.loads(contents["config.json"])).suites[0].name == "resnet50"
    cells = CELL_LIST.validate_json(contents["cells.json"])
    assert [bool(cell.unsupported) for cell in cells] == [False, False, True, True]


def test_what_it_holds_is_as_the_schemas_say(archived):
    contents = contents_of(archived)
    for name, schema in (("run.json", "run"), ("plan.json", "plan")):
        jsonschema.validate(json.loads(contents[f"{RUN}/{name}"]), schema_of(schema))
    for table, read in zip(tables_of("resnet50"), (read_measurements, read_summary), strict=True):
        for row in read(io.StringIO(contents[table].decode())).to_dict("records"):
            plain = {key: None if pd.isna(value) else value for key, value in row.items()}
            jsonschema.validate(plain, schema_of(Path(table).stem))


def test_every_try_is_archived(report, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    leave_suite(report)
    Path(RUN, "tries/1/train.log").write_text("cut")
    write_archive(report, report.runs(report.suites[0]), Path("a.zip"))
    assert contents_of(Path("a.zip"))[f"{RUN}/tries/1/train.log"] == b"cut"


def test_a_suite_of_which_nothing_can_run_is_archived_and_rebuilt(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    suite = SUITE["suites"][0] | {"systems": [GPUS_ONLY]}
    path = archive_suite(load_report(SUITE | {"suites": [suite]}))
    assert len(rebuild(path, Path("new")).same) == 17
    assert "No number of this suite" in contents_of(path)[README].decode()


def test_what_the_gpus_decided_is_in_an_archive(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    suite = SUITE["suites"][0] | {"systems": ["pytorch", "mxnet"]}
    report = load_report(SUITE | {"device": "cuda", "build": "lock", "suites": [suite]})
    decided = Hardware(locks={"pytorch": "volta"}, unfit={"mxnet": {"lock": "the GPU is new"}})
    path = archive_suite(report.model_copy(update={"hardware": decided}))
    assert rebuild(path, Path("new"))
    assert load_report(json.loads(contents_of(path)["config.json"])).hardware == decided


@pytest.mark.parametrize("build", ["lock", "image"])
def test_the_archived_code_of_every_system_has_its_digest(tmp_path, monkeypatch, build):
    asked = {"suites": SUITE["suites"][:1], "systems": "all", "device": "cuda", "build": build}
    report = load_report(SUITE | asked)
    runs = [run for run in report.runs(report.suites[0]) if run.repeat == 1]
    assert {run.system for run in runs} >= {"pytorch", "ngc-mxnet"}
    for run in runs:
        root = tmp_path / run.system
        for name, file in training_files([run]).items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(file, root / name)
        digest = build_of(run).system.code_digest(run.workload)
        with monkeypatch.context() as patched:
            use_root(patched, root)
            assert build_of(run).system.code_digest(run.workload) == digest
        forget()


FASTER = {f"{RUN}/train.log": swap('"seconds": 1', '"seconds": 0.1')}
SUMMARY_ROW = {SUMMARY: swap(",ok,", ",OK,")}
DIVISION = {CHECK: swap("pytorch/1n1g/1,", "pytorch/1n1g/7,")}


@pytest.mark.parametrize(
    "changes", [FASTER, SUMMARY_ROW, DIVISION], ids=["a log", "a table", "the divisions"]
)
def test_a_table_that_the_logs_do_not_give_is_refused_though_the_manifest_fits(archived, changes):
    path = rewritten(archived, changes)
    for call in (verify, lambda one: rebuild(one, Path("new"))):
        with refused_in_one_line(f"{path}: its logs give other tables: ") as refusal:
            call(path)
        assert re.search(r"(measurements|summary|check)\.csv from line 2 on: ", str(refusal.value))


def test_every_figure_and_page_that_differs_is_named(archived):
    figure = figures_of("resnet50")[0]
    changes = {figure: b"<svg/>", PAGE: swap("</h1>", "!</h1>")}
    path = rewritten(archived, changes)
    with refused_in_one_line(
        f"{path}: 2 of 14 files differ from those made again in new: "
    ) as said:
        rebuild(path, Path("new"))
    assert str(said.value).endswith(f"{figure}, {PAGE}")


def test_pages_and_figures_of_another_version_are_made_anew_and_named(archived, capsys):
    figure = figures_of("resnet50")[0]
    page = {PAGE: b"<script>alert(1)</script>", figure: b"<svg/>"}
    numpy = swap(f"numpy {version('numpy')}", "numpy 1.0")
    for to, maker in (("reperf 1.9", made_by("1.9")), ("numpy 1.0", numpy)):
        path = rewritten(archived, page | {METADATA: maker})
        said = rebuilt(path, capsys, to).splitlines()
        for name in (figure, PAGE):
            assert f"{to}/{name}: not as in {path}, which {to} made" in said
        assert Path(to, PAGE).read_bytes() == contents_of(archived)[PAGE]
    tables = rewritten(archived, {METADATA: numpy} | SUMMARY_ROW)
    with refused_in_one_line(f"{tables}: its logs give other tables: "):
        rebuild(tables, Path("new"))


def test_an_archive_of_another_version_is_refused_by_its_version(archived):
    path = rewritten(archived, {METADATA: made_by("0.2.0")})
    for call in (verify, lambda one: rebuild(one, Path("new"))):
        with refused_in_one_line(f"{path}: reperf 0.2.0 made it; reperf {__version__} reads "):
            call(path)
    assert not Path("new").exists()


def test_a_run_that_is_in_no_archive_is_not_measured(archived):
    climbs = {"cells.json": lambda cells: cells.replace(b'"resnet50"', b'"../../../../up"', 1)}
    with pytest.raises(ReperfError, match=r"is not the archive of a suite: .*/up/.* is not in it"):
        rebuild(rewritten(archived, climbs), Path("new"))
    assert not Path("new").exists()


def test_logs_of_others_are_on_the_page_that_rebuilds(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("theirs/1n2g").mkdir(parents=True)
    Path("theirs/1n2g/one.log").write_text("\n".join(step_log()))
    suite = SUITE["suites"][0] | {"systems": [], "from": "theirs"}
    path = archive_suite(load_report(SUITE | {"suites": [suite]}))
    assert PAGE in rebuild(path, Path("new")).same
    page = Path("new", PAGE).read_text()
    assert "from theirs" in page
    assert re.search(r"  file +from/theirs/1n2g/one.log\n", Path("new", README).read_text())
    assert ">None<" not in page


def test_it_explains_itself(archived, report):
    contents = contents_of(archived)
    readme, page = contents[README].decode(), contents[PAGE].decode()
    assert readme.startswith("two repeats: resnet50\n")
    assert f"reperf {__version__} made it" in readme
    for command in ("sha256sum --check", "reperf archive verify", "reperf archive rebuild"):
        assert command in readme
    assert "<h1>two repeats</h1>" in page
    assert SUMMARY in page
    assert "Published" not in page
    # The page says what to send, and its links lead to what lies beside it.
    links = set(re.findall(r'href="([^"#:]+)"', page))
    assert {README, CHECK, f"{RUN}/train.log", f"{RUN}/run.json"} <= links <= contents.keys()
    assert "is the one to send with it" in page
    assert "Archives to send" not in page
    # The readme names the commits of its runs.
    told = {"git_commit": "5f" * 20, "git_dirty": True}
    with verified(archived) as opened:
        opened.extractall()
    record = RunRecord.read(Path(RUN, "run.json")).model_copy(update=told)
    said = pages(report, [record])[README].decode()
    assert f"made it, its runs at commit {'5f' * 20}+.\n" in said


def rebuilt(path: Path, capsys: pytest.CaptureFixture[str], to: str = "new") -> str:
    """What the command says of an archive that it rebuilds in a folder."""
    assert main(["archive", "rebuild", str(path), "--to", to]) == 0
    return capsys.readouterr().out


def test_measuring_it_takes_no_page_for_a_log(archived, capsys):
    assert main(["measure", "--json", str(archived)]) == 3
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert {Path(one["log"]).name for one in found} == {"train.log"}


@pytest.mark.parametrize("name", ["config.json", "cells.json", f"{RUN}/run.json"])
@pytest.mark.parametrize("content", [None, b"[]", b"not JSON"])
def test_what_is_not_the_archive_of_a_suite_is_refused(archived, name, content):
    path = rewritten(archived, {name: content})
    with refused_in_one_line("") as refusal:
        rebuild(path, Path("new"))
    said = str(refusal.value)
    assert Path(name).name in said or "its logs give other tables" in said


@pytest.mark.parametrize(
    "change",
    [
        lambda config: config.update(device="auto"),
        lambda config: config["suites"].append(config["suites"][0] | {"name": "more"}),
    ],
)
def test_a_configuration_that_no_archive_has_is_refused(archived, change):
    path = rewritten(archived, {"config.json": in_json(change)})
    with refused_in_one_line(f"{path}: config.json: allowed: one suite, and a device"):
        rebuild(path, Path("new"))


def test_a_folder_with_files_is_left_alone(archived):
    Path("mine").mkdir()
    Path("mine/file").write_text("mine")
    for folder in (Path("mine"), archived):
        with pytest.raises(ReperfError, match="allowed: a new or empty folder"):
            rebuild(archived, folder)
    assert [path.name for path in Path("mine").iterdir()] == ["file"]


def test_the_crate_tells_when_and_with_what_each_run_was_made(archived):
    contents = contents_of(archived)
    crate = json.loads(contents[METADATA])
    top, failed = entity(crate, "./"), entity(crate, f"#{RUNS}/1n2g/2")
    assert {part["@id"] for part in top["hasPart"]} == contents.keys() - {METADATA}
    assert top["datePublished"] == "2026-01-02T03:06:05.000+00:00"
    assert failed["actionStatus"] == "http://schema.org/FailedActionStatus"
    assert failed["error"] == "no end after 1800 s"
    trainer = entity(crate, failed["instrument"]["@id"])
    assert trainer["@id"] == "workflow/trainers/train.py"
    assert trainer["@type"] == ["File", "SoftwareSourceCode"]


class TestCommand:
    """`reperf archive`: status 0 and what was done, or status 1 and one line."""

    def test_verify_and_rebuild(self, archived, capsys):
        assert main(["archive", "verify", str(archived)]) == 0
        assert "all as they were archived" in capsys.readouterr().out
        assert ": 17 files made again, all with the same bytes" in rebuilt(archived, capsys)

    def test_several_are_verified_and_each_fault_is_told(self, archived, capsys):
        Path("broken.zip").write_bytes(archived.read_bytes()[:-1])
        assert main(["archive", "verify", str(archived), "broken.zip", str(archived)]) == 1
        said = capsys.readouterr()
        assert said.out.count("all as they were archived") == 2
        assert said.err.startswith("reperf: broken.zip: ")
        assert said.err.count("\n") == 1
