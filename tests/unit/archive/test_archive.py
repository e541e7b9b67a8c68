"""The archive of a suite: all that its numbers came from, and the numbers made again from it."""

import csv
import io
import json
import re
import socket
from pathlib import Path

import pytest
from reperf import __version__
from reperf.archive.container import verified
from reperf.archive.contents import CELL_LIST, write_archive
from reperf.archive.names import METADATA, PAGE, README, REPERF
from reperf.archive.rebuild import rebuild
from reperf.archive.suite_pages import pages
from reperf.cli import main
from reperf.config import load_report
from reperf.drawing.figures import draw_suite
from reperf.errors import ReperfError
from reperf.layout import FIRST_KINDS, figures_of, tables_of
from reperf.training.record import RunRecord

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


def made_by(version: str):
    return swap(f'"version": "{__version__}"', f'"version": "{version}"')


def test_an_archive_that_comes_out_differently_names_the_version_that_made_it(archived):
    rows, commit = swap("images", "pictures"), "5f" * 20
    other = {METADATA: made_by("0.0.9"), SUMMARY: rows}
    known = other | {f"{RUN}/run.json": in_json(lambda said: said.update(git_commit=commit))}
    for changes, told in (
        (other, r"reperf 0\.0\.9 made the archive, and rebuilds it with .* of that version; this"),
        (known, rf"requirements\.txt at commit {commit}; this is"),
        ({SUMMARY: rows}, r"from line 2 on: [^;]*$"),  # of this version
    ):
        with pytest.raises(ReperfError, match=told):
            rebuild(rewritten(archived, changes), Path(f"new{len(changes)}"))


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
    monkeypatch.setattr("reperf.archive.rebuild.draw_suite", draw_suite)  # anew
    made = rebuild(archived, Path("new/folder"))
    assert made.same == [*tables_of("resnet50"), *figures_of("resnet50"), README, PAGE]
    assert not made.by_another
    for name, content in contents_of(archived).items():
        assert Path("new/folder", name).read_bytes() == content, name


def test_the_same_runs_give_the_same_archive(archived, report):
    assert archive_suite(report).read_bytes() == archived.read_bytes()


def test_it_holds_what_the_numbers_came_from(archived):
    contents = contents_of(archived)
    names = contents.keys()
    runs = [f"{RUNS}/1n{gpus}g/{repeat}" for gpus in (1, 2) for repeat in (1, 2)]
    assert names >= {f"{run}/{name}" for run in runs for name in ("train.log", "run.json")}
    assert names >= {"envs/pytorch.txt", "workflow/workloads/resnet50.yaml", SYSTEM}
    parts = ("train.py", "contract/steplog.py", "recipes/resnet50.py")
    assert names >= {f"workflow/trainers/{part}" for part in parts}
    assert not any("vgg16" in name for name in names)
    assert load_report(json.loads(contents["config.json"])).suites[0].name == "resnet50"
    cells = CELL_LIST.validate_json(contents["cells.json"])
    assert [bool(cell.unsupported) for cell in cells] == [False, False, True, True]


def test_every_try_is_archived(report, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    leave_suite(report)
    Path(RUN, "tries/1/train.log").write_text("cut")
    write_archive(report, report.runs(report.suites[0]), Path("a.zip"))
    assert contents_of(Path("a.zip"))[f"{RUN}/tries/1/train.log"] == b"cut"


@pytest.mark.parametrize(
    ("suite", "asked"),
    [
        (SUITE["suites"][0] | {"systems": [GPUS_ONLY]}, {}),  # nothing can run
        (
            SUITE["suites"][1] | {"systems": [{"system": "pytorch", "variants": "bf16"}]},
            {"device": "cuda", "build": "lock"},
        ),
    ],
    ids=["of which nothing can run", "of the variant that bfloat16 was"],
)
def test_a_suite_is_archived_and_rebuilt(tmp_path, monkeypatch, suite, asked):
    monkeypatch.chdir(tmp_path)
    report = load_report(SUITE | {"suites": [suite]} | asked, archived=True)
    assert len(rebuild(archive_suite(report), Path("new")).same) == 10


def test_every_file_that_differs_is_named(archived):
    figure = figures_of("resnet50")[0]
    changes = {SUMMARY: swap(",ok,", ",OK,"), figure: b"<svg/>", PAGE: swap("</h1>", "!</h1>")}
    path = rewritten(archived, changes)
    with refused_in_one_line(f"{path}: 3 of 10 files differ") as refusal:
        rebuild(path, Path("new"))
    places = [str(refusal.value).index(name) for name in changes]
    assert places == sorted(places)
    assert f"{SUMMARY} from line 2 on: " in str(refusal.value)


def test_one_of_an_earlier_version_rebuilds_without_what_came_later(archived):
    first = figures_of("resnet50", FIRST_KINDS)
    later = {*figures_of("resnet50")} - {*first}

    def of_then(crate: dict) -> None:
        crate["@graph"] = [one for one in crate["@graph"] if one["@id"] not in later]
        top = entity(crate, "./")
        top["hasPart"] = [part for part in top["hasPart"] if part["@id"] not in later]
        entity(crate, REPERF)["version"] = "0.0.9"

    rows, text = csv.reader(io.StringIO(contents_of(archived)[SUMMARY].decode())), io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(row[:31] for row in rows)
    earlier = {METADATA: in_json(of_then), SUMMARY: text.getvalue().encode()}
    earlier |= dict.fromkeys(later)
    made = rebuild(rewritten(archived, earlier), Path("new"))
    assert {*made.same, *made.by_another} == {*tables_of("resnet50"), *first, README, PAGE}
    assert made.by_another[SUMMARY][1].startswith(" without ")
    earlier[SUMMARY] = text.getvalue().replace(",ok,", ",OK,", 1).encode()
    forged = rewritten(archived, earlier)
    with refused_in_one_line(f"{forged}: 1 of 8 files differ"):
        rebuild(forged, Path("other"))


def test_logs_of_others_are_on_the_page_that_rebuilds(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("theirs").mkdir()
    Path("theirs/one.log").write_text("\n".join(step_log()))
    suite = SUITE["suites"][0] | {"systems": [], "from": "theirs"}
    path = archive_suite(load_report(SUITE | {"suites": [suite]}))
    assert PAGE in rebuild(path, Path("new")).same
    page = Path("new", PAGE).read_text()
    assert "from theirs" in page
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
    # The readme names the commits of its runs.
    told = {"git_commit": "5f" * 20, "git_dirty": True}
    with verified(archived) as opened:
        opened.extractall()
    record = RunRecord.read(Path(RUN, "run.json")).model_copy(update=told)
    said = pages(report, [record])[README].decode()
    assert f"made it, its runs at commit {'5f' * 20}+.\n" in said


def rebuilt(path: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """What the command says of an archive that it rebuilds in the folder `new`."""
    assert main(["archive", "rebuild", str(path), "--to", "new"]) == 0
    return capsys.readouterr().out


EARLIER = f"which an earlier commit of reperf {__version__} wrote"


def test_pages_of_another_version_are_made_anew_and_named(archived, capsys):
    changes = {METADATA: made_by("9.9"), PAGE: b"<script>alert(1)</script>"}
    path = rewritten(archived, changes)
    said = f"new/{PAGE}: not as in {path}, which reperf 9.9 wrote"
    assert said in rebuilt(path, capsys).splitlines()
    assert Path("new", PAGE).read_bytes() == contents_of(archived)[PAGE]


def test_ids_that_draw_nothing_and_a_page_of_an_earlier_commit_are_named(archived, capsys):
    figure = figures_of("resnet50")[0]
    ids = swap('<g id="series/', '<g id="part-')
    changes = {figure: ids, PAGE: lambda page: page + b"\n"}
    path = rewritten(archived, changes)
    said = rebuilt(path, capsys)
    assert f"{figure}: drawn as in {path}, {EARLIER} with other ids, which draw nothing\n" in said
    assert f"{PAGE}: not as in {path}, {EARLIER}\n" in said
    moved = {figure: lambda drawn: ids(drawn).replace(b"translate(", b"translate(1", 1)}
    path = rewritten(archived, changes | moved)
    with refused_in_one_line(f"{path}: 2 of 10 files differ"):
        rebuild(path, Path("moved"))


def test_other_words_than_here_are_named_and_another_number_in_a_page_is_refused(archived, capsys):
    words = {PAGE: swap("</h1>", ", they say</h1>"), SYSTEM: swap("title: ", "title: Fast ")}
    path = rewritten(archived, words)
    said, who = rebuilt(path, capsys), f"in {path}, {EARLIER}, or somebody edited"
    assert f"{PAGE}: not as {who}; the numbers in its tables are the same\n" in said
    assert f"{SYSTEM}: not as this reperf has it, but as {who}; titles and units" in said
    number = re.search(r"<b>([\d.]+)</b> images/s", contents_of(archived)[PAGE].decode())[1]
    path = rewritten(archived, {PAGE: swap(number, f"9{number}")})
    with refused_in_one_line(f"{path}: 1 of 10 files differ") as refusal:
        rebuild(path, Path("faster"))
    assert str(refusal.value).endswith(f"{PAGE}, which says 9{number}")


def test_an_archive_without_pages_is_one_of_earlier_versions(archived):
    def drop(crate: dict) -> None:
        crate["@graph"] = [one for one in crate["@graph"] if one["@id"] not in (README, PAGE)]
        top = entity(crate, "./")
        top["hasPart"] = [part for part in top["hasPart"] if part["@id"] not in (README, PAGE)]

    earlier = rewritten(archived, {METADATA: in_json(drop), README: None, PAGE: None})
    made = rebuild(earlier, Path("new"))
    assert made.same == [*tables_of("resnet50"), *figures_of("resnet50")]
    assert Path("new", PAGE).exists()


def test_measuring_it_takes_no_page_for_a_log(archived, capsys):
    assert main(["measure", "--json", str(archived)]) == 3
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert {Path(one["log"]).name for one in found} == {"train.log"}


def test_a_changed_log_shows_even_with_a_manifest_that_fits(archived):
    faster = {f"{RUN}/train.log": swap('"seconds": 1', '"seconds": 0.1')}
    with pytest.raises(ReperfError, match=r"measurements\.csv from line 2 on: "):
        rebuild(rewritten(archived, faster), Path("new"))


@pytest.mark.parametrize("name", ["config.json", "cells.json", f"{RUN}/run.json"])
@pytest.mark.parametrize("content", [None, b"[]", b"not JSON"])
def test_what_is_not_the_archive_of_a_suite_is_refused(archived, name, content):
    path = rewritten(archived, {name: content})
    with refused_in_one_line("") as refusal:
        rebuild(path, Path("new"))
    assert Path(name).name in str(refusal.value)


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


def test_a_name_that_climbs_out_of_the_folder_writes_nothing(archived):
    climbs = {"cells.json": lambda cells: cells.replace(b'"resnet50"', b'"../../../../up"', 1)}
    with pytest.raises(ReperfError, match=r'got "\.\./\.\./.*/up"; allowed: "resnet50"'):
        rebuild(rewritten(archived, climbs), Path("new"))
    left = sorted(path.name for path in archived.parent.iterdir())
    assert left == ["resnet50.zip", "rewritten.zip"]


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
        assert len(rebuilt(archived, capsys).splitlines()) == 10

    def test_several_are_verified_and_each_fault_is_told(self, archived, capsys):
        Path("broken.zip").write_bytes(archived.read_bytes()[:-1])
        assert main(["archive", "verify", str(archived), "broken.zip", str(archived)]) == 1
        said = capsys.readouterr()
        assert said.out.count("all as they were archived") == 2
        assert said.err.startswith("reperf: broken.zip: ")
        assert said.err.count("\n") == 1

    def test_a_changed_archive_is_refused_by_both(self, archived, capsys):
        content = bytearray(archived.read_bytes())
        content[len(content) // 2] ^= 4
        archived.write_bytes(content)
        for call in (["verify", str(archived)], ["rebuild", str(archived), "--to", "new"]):
            assert main(["archive", *call]) == 1
            message = capsys.readouterr().err
            assert message.startswith(f"reperf: {archived}: ")
            assert message.count("\n") == 1
        assert not Path("new").exists()
