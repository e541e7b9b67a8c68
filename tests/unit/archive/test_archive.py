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
from reperf.archive.contents import CELL_LIST
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
from reperf.member_names import CELLS, CHECK, CONFIG, METADATA, PAGE, README
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
    archive_suite,
    contents_of,
    in_json,
    report_of,
    rewritten,
    swap,
)

pytestmark = pytest.mark.usefixtures("drawn_once")

SUMMARY = tables_of("resnet50")[1]
FIGURE = figures_of("resnet50")[0]
NUMPY = {METADATA: swap(f"numpy {version('numpy')}", "numpy 1.0")}


def made_by(version: str):
    return {METADATA: swap(f'"version": "{__version__}"', f'"version": "{version}"')}


def test_tables_and_figures_rebuild_to_the_byte_from_the_archive_alone(archived, monkeypatch):
    def refuse(*_: object) -> None:
        raise AssertionError("a rebuild must not ask the network")

    monkeypatch.setattr(socket, "socket", refuse)
    monkeypatch.setattr("reperf.drawing.figures.draw_suite", draw_suite)  # anew
    made = rebuild(archived, Path("new/folder"))
    assert made.same == [*tables_of("resnet50"), CHECK, *figures_of("resnet50"), README, PAGE]
    assert not made.differ
    for name, content in contents_of(archived).items():
        assert Path("new/folder", name).read_bytes() == content, name


def test_the_same_runs_give_the_same_archive(archived, report):
    assert archive_suite(report).read_bytes() == archived.read_bytes()


def test_it_holds_what_the_numbers_came_from_as_the_schemas_say(archived):
    contents = contents_of(archived)
    runs = [f"{RUNS}/1n{gpus}g/{repeat}" for gpus in (1, 2) for repeat in (1, 2)]
    left = {f"{run}{a_try}/{name}" for run in runs for a_try in ("", "/tries/1") for name in FILES}
    code = ("trainers/train.py", "trainers/contract/steplog.py", "trainers/recipes/resnet50.py")
    code += ("trainers/frameworks/torch/framework.yaml", "systems/pytorch/system.yaml")
    code += ("workloads/resnet50.yaml",)
    assert contents.keys() >= left | {"envs/pytorch.txt", *(f"workflow/{name}" for name in code)}
    assert not any("vgg16" in name for name in contents)
    assert load_report(json.loads(contents[CONFIG])).suites[0].name == "resnet50"
    cells = CELL_LIST.validate_json(contents[CELLS])
    assert [bool(cell.unsupported) for cell in cells] == [False, False, True, True]
    for name, schema in (("run.json", "run"), ("plan.json", "plan")):
        jsonschema.validate(json.loads(contents[f"{RUN}/{name}"]), schema_of(schema))
    for table, read in zip(tables_of("resnet50"), (read_measurements, read_summary), strict=True):
        for row in read(io.StringIO(contents[table].decode())).to_dict("records"):
            plain = {key: None if pd.isna(value) else value for key, value in row.items()}
            jsonschema.validate(plain, schema_of(Path(table).stem))


FILES = ("train.log", "run.json")


def test_a_suite_of_which_nothing_can_run_is_archived_and_rebuilt(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = archive_suite(report_of([GPUS_ONLY]))
    assert len(rebuild(path, Path("new")).same) == 17
    assert "No number of this suite" in contents_of(path)[README].decode()


def test_what_the_gpus_decided_is_in_an_archive(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    report = report_of(["pytorch", "mxnet"], device="cuda", build="lock")
    decided = Hardware(locks={"pytorch": "volta"}, unfit={"mxnet": {"lock": "the GPU is new"}})
    path = archive_suite(report.model_copy(update={"hardware": decided}))
    assert rebuild(path, Path("new"))
    assert load_report(json.loads(contents_of(path)[CONFIG])).hardware == decided


def test_logs_of_others_are_on_the_page_that_rebuilds(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("theirs/1n2g").mkdir(parents=True)
    Path("theirs/1n2g/one.log").write_text("\n".join(step_log()))
    assert PAGE in rebuild(archive_suite(report_of([], **{"from": "theirs"})), Path("new")).same
    page = Path("new", PAGE).read_text()
    assert "from theirs" in page
    assert re.search(r"  file +from/theirs/1n2g/one.log\n", Path("new", README).read_text())
    assert ">None<" not in page


@pytest.mark.parametrize("build", ["lock", "image"])
def test_the_archived_code_of_every_system_has_its_digest(tmp_path, monkeypatch, build):
    report = report_of(systems="all", device="cuda", build=build)
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


def of_path(path: str):
    """A configuration that measures logs at a path."""
    return {CONFIG: in_json(lambda config: config["suites"][0].update({"from": [{"path": path}]}))}


OUTSIDE = ("/dev/zero", "/etc/hostname", "..", "../secret.log", "from/..", "from", "results/runs")
OTHER = r"its logs give other tables: .*(measurements|summary|check)\.csv from line 2 on: "
NO_SUITE = r"is not the archive of a suite: "
TWO = in_json(lambda config: config["suites"].append(config["suites"][0] | {"name": "more"}))


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        *(
            (of_path(path), r"is no member; allowed: |allowed: a path that ends")
            for path in OUTSIDE
        ),
        ({f"{RUN}/train.log": swap('"seconds": 1', '"seconds": 0.1')}, OTHER),
        ({SUMMARY: swap(",ok,", ",OK,")}, OTHER),
        ({SUMMARY: swap(",ok,", ",OK,")} | NUMPY, OTHER),
        ({CHECK: swap("pytorch/1n1g/1,", "pytorch/1n1g/7,")}, OTHER),
        (made_by("0.2.0"), f"reperf 0.2.0 made it; reperf {__version__} reads "),
        (
            {CELLS: lambda cells: cells.replace(b'"resnet50"', b'"../../../../up"', 1)},
            f"{NO_SUITE}.*/up/.* is not in it",
        ),
        *(
            ({name: content}, f"{Path(name).name}|{OTHER}")
            for name in (CONFIG, CELLS, f"{RUN}/run.json")
            for content in (None, b"[]", b"not JSON")
        ),
        *(
            ({CONFIG: change}, "config.json: allowed: one suite, and a device")
            for change in (TWO, in_json(lambda config: config.update(device="auto")))
        ),
    ],
)
def test_what_its_logs_do_not_give_is_refused_though_the_manifest_fits(archived, changes, why):
    Path("secret.log").write_text("\n".join(step_log()))
    path = rewritten(archived, changes)
    for call in (verify, lambda one: rebuild(one, Path("new"))):
        with refused_in_one_line("") as refusal:
            call(path)
        assert re.search(why, str(refusal.value))
    assert not Path("new", PAGE).exists()


def test_every_figure_and_page_that_differs_is_named(archived):
    path = rewritten(archived, {FIGURE: b"<svg/>", PAGE: swap("</h1>", "!</h1>")})
    differ = f"{path}: 2 of 14 files differ from those made again in new: "
    with refused_in_one_line(differ) as said:
        rebuild(path, Path("new"))
    assert str(said.value).endswith(f"{FIGURE}, {PAGE}")


def test_pages_and_figures_of_another_version_are_made_anew_and_named(archived, capsys):
    page = {PAGE: b"<script>alert(1)</script>", FIGURE: b"<svg/>"}
    for to, maker in (("reperf 1.9", made_by("1.9")), ("numpy 1.0", NUMPY)):
        path = rewritten(archived, page | maker)
        said = rebuilt(path, capsys, to).splitlines()
        for name in (FIGURE, PAGE):
            assert f"{to}/{name}: not as in {path}, which {to} made" in said
        assert Path(to, PAGE).read_bytes() == contents_of(archived)[PAGE]


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
    with verified(archived) as opened:
        opened.extractall()
    told = {"git_commit": "5f" * 20, "git_dirty": True}
    record = RunRecord.read(Path(RUN, "run.json")).model_copy(update=told)
    said = pages(report, [record])[README].decode()
    assert f"made it, its runs at commit {'5f' * 20}+.\n" in said


def test_the_crate_tells_when_and_with_what_each_run_was_made(archived):
    contents = contents_of(archived)
    crate = {entity["@id"]: entity for entity in json.loads(contents[METADATA])["@graph"]}
    top, failed = crate["./"], crate[f"#{RUNS}/1n2g/2"]
    assert {part["@id"] for part in top["hasPart"]} == contents.keys() - {METADATA}
    assert top["datePublished"] == "2026-01-02T03:06:05.000+00:00"
    assert failed["actionStatus"] == "http://schema.org/FailedActionStatus"
    assert failed["error"] == "no end after 1800 s"
    trainer = crate[failed["instrument"]["@id"]]
    assert trainer["@id"] == "workflow/trainers/train.py"
    assert trainer["@type"] == ["File", "SoftwareSourceCode"]


def test_a_folder_with_files_is_left_alone(archived):
    Path("mine").mkdir()
    Path("mine/file").write_text("mine")
    for folder in (Path("mine"), archived):
        with pytest.raises(ReperfError, match="allowed: a new or empty folder"):
            rebuild(archived, folder)
    assert [path.name for path in Path("mine").iterdir()] == ["file"]


def rebuilt(path: Path, capsys: pytest.CaptureFixture[str], to: str = "new") -> str:
    """What the command says of an archive that it rebuilds in a folder."""
    assert main(["archive", "rebuild", str(path), "--to", to]) == 0
    return capsys.readouterr().out


def test_the_command_says_what_was_done_or_each_fault_in_a_line(archived, capsys):
    assert ": 17 files made again, all with the same bytes" in rebuilt(archived, capsys)
    assert main(["archive", "verify", str(archived)]) == 0
    Path("broken.zip").write_bytes(archived.read_bytes()[:-1])
    assert main(["archive", "verify", str(archived), "broken.zip", str(archived)]) == 1
    said = capsys.readouterr()
    assert said.out.count("all as they were archived") == 3
    assert said.err.startswith("reperf: broken.zip: ")
    assert said.err.count("\n") == 1


def test_measuring_it_takes_no_page_for_a_log(archived, capsys):
    assert main(["measure", "--json", str(archived)]) == 3
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert {Path(one["log"]).name for one in found} == {"train.log"}
