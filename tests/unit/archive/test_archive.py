"""Archives: bytes that depend on the contents alone, and no fault that goes unseen."""

import csv
import hashlib
import io
import json
import os
import re
import resource
import shutil
import socket
import stat
import zipfile
from collections.abc import Callable
from contextlib import chdir
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reperf import __version__
from reperf.archive.container import MANIFEST, Member, unpack, verified, write
from reperf.archive.contents import CELL_LIST, files_of_systems, write_archive
from reperf.archive.names import METADATA, PAGE, README, REPERF
from reperf.archive.rebuild import make_results, rebuild
from reperf.archive.suite_pages import pages
from reperf.builds import build_of
from reperf.cli import main
from reperf.config import Report, load_report
from reperf.config.known_hardware import Hardware
from reperf.drawing.figures import draw_suite
from reperf.errors import ReperfError
from reperf.files import sha256
from reperf.layout import FIGURES, FIRST_KINDS, figures_of, tables_of
from reperf.machine import describe_host
from reperf.measuring.again import measured_tables
from reperf.plans.planning import Plans
from reperf.plans.run_plan import RunPlan
from reperf.systems import ROOT
from reperf.training.record import Environment, RunRecord

from tests.helpers.refusal import refused_in_one_line
from tests.helpers.step_logs import step_log

PARTS = st.text("abcXYZ019-+._: äß", min_size=1, max_size=6).filter(lambda part: part.strip("."))
NAMES = st.lists(PARTS, min_size=1, max_size=3).map("/".join).filter(lambda name: name[1:2] != ":")
ANY_NAMES = st.text(st.characters() | st.sampled_from("./\\:\n\0\u2028\udcff"), max_size=300)
CONTENTS = st.dictionaries(NAMES, st.binary(max_size=300), max_size=6).filter(
    lambda files: MANIFEST not in files
)


def archive(path: Path, contents: dict[str, bytes]) -> Path:
    write(path, [Member.of_bytes(name, content) for name, content in contents.items()])
    return path


def fault_of(path: Path) -> str:
    """The one line with which an archive is refused."""
    with refused_in_one_line(f"{path}: ") as refusal, verified(path):
        pass
    return str(refusal.value)


class TestContainer:
    """What holds for every archive, whatever is in it."""

    @given(contents=CONTENTS, shuffled=st.randoms(use_true_random=False))
    @settings(max_examples=40, deadline=None)
    def test_bytes_do_not_depend_on_order_times_or_modes(
        self, tmp_path_factory, contents, shuffled
    ):
        folder = tmp_path_factory.mktemp("archive")
        first = archive(folder / "first.zip", contents)

        names = list(contents)
        shuffled.shuffle(names)
        members = []
        for place, name in enumerate(names):
            file = folder / f"file{place}"
            file.write_bytes(contents[name])
            file.chmod(0o600 | shuffled.choice((0, 0o177)))
            os.utime(file, (shuffled.randrange(2**31), shuffled.randrange(2**31)))
            members.append(Member.of_file(name, file))
        former = os.umask(shuffled.choice((0, 0o077)))
        try:
            write(folder / "second.zip", members)
        finally:
            os.umask(former)

        assert (folder / "second.zip").read_bytes() == first.read_bytes()

    @given(contents=CONTENTS)
    @settings(max_examples=40, deadline=None)
    def test_what_was_written_is_verified_and_read_back(self, tmp_path_factory, contents):
        path = archive(tmp_path_factory.mktemp("archive") / "some.zip", contents)
        with verified(path) as opened:
            assert {*opened.namelist()} == {*contents, MANIFEST}
            assert all(opened.read(name) == content for name, content in contents.items())

    @given(names=st.lists(ANY_NAMES, max_size=3))
    @settings(max_examples=200, deadline=None)
    def test_nothing_is_written_that_would_not_be_verified(self, tmp_path_factory, names):
        path = tmp_path_factory.mktemp("archive") / "a.zip"
        try:
            write(path, [Member.of_bytes(name, b"log") for name in names])
        except ReperfError as refusal:
            assert str(refusal).startswith(f"{path}: ")
            assert len(str(refusal).splitlines()) == 1
            assert not list(path.parent.iterdir())
        else:
            with verified(path) as opened:
                assert {*opened.namelist()} == {*names, MANIFEST}
                for name in names:
                    unpack(opened, name, path.parent / "unpacked")

    @pytest.mark.parametrize(
        ("names", "fault"),
        [
            (["a\\b.log"], "leaves the archive or cannot be a name; allowed: printed names"),
            (["a\x1b.log"], "leaves the archive or cannot be a name; allowed: printed names"),
            (["a\udcff.log"], "leaves the archive or cannot be a name; allowed: printed names"),
            (["a" * 231], "is too long a name for an archive; allowed: printed names"),
            (["a/" * 1001 + "b"], "is too long a name for an archive; allowed: printed names"),
            (["a.log", "a.log"], "appears twice; allowed: each member once"),
            ([MANIFEST], "appears twice; allowed: each member once"),
        ],
    )
    def test_names_that_cannot_stand_in_an_archive_are_not_written(self, tmp_path, names, fault):
        path = tmp_path / "a.zip"
        with pytest.raises(ReperfError) as refusal:
            write(path, [Member.of_bytes(name, b"log") for name in names])
        assert str(refusal.value).startswith(f"{path}: {repr(names[0][:300])[:-1]}")
        assert fault in str(refusal.value)
        assert not list(tmp_path.iterdir())

    def test_the_manifest_is_what_sha256sum_reads(self, tmp_path):
        with verified(archive(tmp_path / "a.zip", {"b/c": b"two", "a": b"one"})) as opened:
            lines = opened.read(MANIFEST).decode()
        assert lines == "".join(
            f"{hashlib.sha256(content).hexdigest()}  {name}\n"
            for name, content in (("a", b"one"), ("b/c", b"two"))
        )

    def test_a_change_of_any_byte_is_found(self, tmp_path):
        path = archive(tmp_path / "a.zip", {"log/a": b"speed 12", "log/b": b""})
        whole = path.read_bytes()
        for place, byte in enumerate(whole):
            changed = byte ^ (1 << place % 8)
            path.write_bytes(whole[:place] + bytes([changed]) + whole[place + 1 :])
            fault_of(path)

    @given(contents=CONTENTS, data=st.data())
    @settings(max_examples=60, deadline=None)
    def test_bytes_cut_off_put_in_or_changed_are_found(self, tmp_path_factory, contents, data):
        path = archive(tmp_path_factory.mktemp("archive") / "a.zip", contents)
        whole = path.read_bytes()
        start = data.draw(st.integers(0, len(whole)))
        stop = data.draw(st.integers(start, len(whole)))
        spoilt = whole[:start] + data.draw(st.binary(max_size=20)) + whole[stop:]
        path.write_bytes(spoilt)
        if spoilt != whole:
            fault_of(path)

    def test_what_is_no_archive_is_refused(self, tmp_path):
        assert "No such file" in fault_of(tmp_path / "missing.zip")
        assert "directory" in fault_of(tmp_path)
        (tmp_path / "empty.zip").write_bytes(b"")
        assert "is no whole archive" in fault_of(tmp_path / "empty.zip")
        (tmp_path / "text.zip").write_text("no archive\n" * 100)
        assert "is no whole archive" in fault_of(tmp_path / "text.zip")
        zipfile.ZipFile(tmp_path / "other.zip", "w").close()
        assert f"{MANIFEST!r} is missing" in fault_of(tmp_path / "other.zip")

    def test_a_disk_that_takes_no_more_leaves_no_archive(self, tmp_path):
        log = Member.of_bytes("log", b"x" * 100_000)
        former = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, former[1]))
        try:
            with pytest.raises(ReperfError, match=r"a\.zip: cannot be written"):
                write(tmp_path / "a.zip", [log])
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, former)
        assert list(tmp_path.iterdir()) == []


def forged(path: Path, members: list[tuple[zipfile.ZipInfo | str, bytes]], listed=None) -> Path:
    """A zip file as others would make it, with a manifest that fits."""
    names = [m if isinstance(m, str) else m.filename for m, _ in members]
    lines = [
        f"{hashlib.sha256(content).hexdigest()}  {name}\n"
        for name, (_, content) in zip(names, members, strict=True)
        if listed is None or name in listed
    ]
    with zipfile.ZipFile(path, "w") as target:
        for member, content in [*members, (MANIFEST, "".join(lines).encode())]:
            target.writestr(member, content)
    return path


def entry(name: str, mode: int = stat.S_IFREG | 0o644, **fields: object) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name)
    info.external_attr = mode << 16
    for field, value in fields.items():
        setattr(info, field, value)
    return info


class TestHostileArchives:
    """Archives from anywhere: each is refused in one line before a byte of it is written."""

    @pytest.mark.parametrize(
        "name",
        [
            "../up",
            "a/../../up",
            "/absolute",
            "./here",
            "a//b",
            "a\\..\\up",
            "C:up",
            "new\nline",
            "folder/",
        ],
    )
    def test_a_path_that_leaves_the_archive(self, tmp_path, name):
        path = forged(tmp_path / "a.zip", [(name, b"")])
        assert f"{name!r} leaves the archive" in fault_of(path)

    @pytest.mark.parametrize("kind", [stat.S_IFLNK, stat.S_IFDIR, stat.S_IFIFO, stat.S_IFCHR])
    def test_what_is_no_file(self, tmp_path, kind):
        what = "folder" if kind == stat.S_IFDIR else "link or a device"
        path = forged(tmp_path / "a.zip", [(entry("log", kind | 0o777), b"/etc/passwd")])
        assert f"'log' is a {what}; allowed: files" in fault_of(path)

    def test_a_member_that_is_there_twice(self, tmp_path):
        with pytest.warns(UserWarning, match="Duplicate"):
            path = forged(tmp_path / "a.zip", [("log", b"one"), ("log", b"two")])
        assert "'log' appears twice" in fault_of(path)

    def test_a_compressed_member(self, tmp_path):
        bomb = entry("log", compress_type=zipfile.ZIP_DEFLATED)
        path = forged(tmp_path / "a.zip", [(bomb, b"\0" * 10_000_000)])
        assert "'log' is compressed" in fault_of(path)

    def test_an_encrypted_member(self, tmp_path):
        path = archive(tmp_path / "a.zip", {"log": b"secret"})
        content = bytearray(path.read_bytes())
        central = content.index(b"PK\x01\x02")
        content[central + 8] |= 1
        path.write_bytes(content)
        assert "'log' is encrypted" in fault_of(path)

    def test_members_that_claim_more_bytes_than_there_are(self, tmp_path):
        path = archive(tmp_path / "a.zip", {"log": b"short"})
        content = bytearray(path.read_bytes())
        central = content.index(b"PK\x01\x02")
        content[central + 20 : central + 28] = (2**31).to_bytes(4, "little") * 2
        path.write_bytes(content)
        assert "claim 2147483" in fault_of(path)

    def test_a_missing_and_an_added_member(self, tmp_path):
        logs = [("a.log", b"1"), ("b.log", b"2")]
        path = forged(tmp_path / "added.zip", logs, listed=["a.log"])
        assert "'b.log' was added" in fault_of(path)
        contents = {"a.log": b"1", MANIFEST: f"{'0' * 64}  b.log\n".encode()}
        with zipfile.ZipFile(tmp_path / "missing.zip", "w") as target:
            for name, content in contents.items():
                target.writestr(name, content)
        assert "'b.log' is missing" in fault_of(tmp_path / "missing.zip")

    def test_a_manifest_that_is_none(self, tmp_path):
        with zipfile.ZipFile(tmp_path / "a.zip", "w") as target:
            target.writestr(MANIFEST, "no digest here\n")
        assert "line 1: 'no digest here'" in fault_of(tmp_path / "a.zip")

    def test_right_members_in_another_form(self, tmp_path):
        # Times, order and bytes between members tell nothing, so nobody may hide anything there.
        path = forged(tmp_path / "a.zip", [("b.log", b"2"), ("a.log", b"1")])
        assert "beside its members" in fault_of(path)


GPUS_ONLY = {"system": "ngc-tensorflow1", "variants": "xla"}
"""What no CPU can train."""

SUITE = {
    "title": "two repeats",
    "topologies": ["1n1g", "1n2g"],
    "repeats": 2,
    "device": "cpu",
    "suites": [
        {
            "name": "resnet50",
            "workload": "resnet50",
            "precision": "fp32",
            "batch_size": 8,
            "systems": ["pytorch", GPUS_ONLY],
        },
        {
            "name": "another",
            "workload": "resnet50",
            "precision": "amp",
            "batch_size": 8,
            "systems": ["pytorch"],
        },
    ],
}


PINS = dict(re.findall(r"^(\S+)==(\S+)", (ROOT / "envs/pytorch.txt").read_text(), re.MULTILINE))


def leave_run(plan: RunPlan, status: str = "ok") -> None:
    """Leave a run's plan, log and record in the working folder."""
    run = plan.run
    lock = build_of(run).lock
    rate = 50.0 * run.world_size**0.9 * (1 + run.repeat / 100)
    lines = step_log(batch=run.global_batch, world=run.world_size, rate=rate)
    run.folder.mkdir(parents=True)
    (run.folder / "plan.json").write_text(plan.text)
    log = run.folder / "train.log"
    log.write_text("\n".join(lines if status == "ok" else lines[:8]) + "\n")
    RunRecord(
        status=status,
        reason="" if status == "ok" else "no end after 1800 s",
        run=run,
        attempt=1,
        command=("python", *plan.launch, *plan.program),
        variables=plan.variables,
        environment=Environment(
            lock=str(lock.relative_to(ROOT)),
            lock_sha256=sha256(lock),
            python="3.11.7",
            packages={"numpy": PINS["numpy"]},
        ),
        trainer=plan.trainer,
        plan=plan.digest,
        git_commit=None,
        git_dirty=None,
        host=describe_host(),
        started=f"2026-01-02T03:0{3 + run.repeat}:05.000+00:00",
        ended=f"2026-01-02T03:0{4 + run.repeat}:05.000+00:00",
        seconds=60.0 * run.repeat,
        exit_code=0,
        nodes=("node1",),
        log_sha256=sha256(log),
    ).write(run.folder / "run.json")
    shutil.copytree(run.folder, run.folder / "tries/1")


def leave_suite(report: Report) -> None:
    """Leave in the working folder what the workflow leaves there before it archives."""
    (suite,) = report.suites
    for plan in Plans(report).runs.values():
        ended = (plan.run.topology, plan.run.repeat)
        leave_run(plan, "timeout" if ended == ("1n2g", 2) else "ok")
    make_results(report, tuple(report.cells(suite)))


@pytest.fixture(scope="session")
def report() -> Report:
    return load_report(SUITE).alone("resnet50")


@pytest.fixture(scope="session")
def _archived(report, tmp_path_factory) -> Path:
    working = tmp_path_factory.mktemp("working")
    path = tmp_path_factory.mktemp("archive") / "resnet50.zip"
    with chdir(working):
        leave_suite(report)
        write_archive(report, report.runs(report.suites[0]), path)
    shutil.rmtree(working)
    return path


@pytest.fixture
def archived(_archived, tmp_path, monkeypatch) -> Path:
    """An archive of a suite in an otherwise empty folder, which is the working folder."""
    monkeypatch.chdir(tmp_path)
    return Path(shutil.copy(_archived, tmp_path))


def rewritten(path: Path, **changes: bytes | None) -> Path:
    """A copy whose manifest fits, with some files changed or, by None, left out."""
    with verified(path) as opened:
        contents = {name: opened.read(name) for name in opened.namelist() if name != MANIFEST}
    contents |= changes
    kept = {name: content for name, content in contents.items() if content is not None}
    return archive(path.with_name("rewritten.zip"), kept)


class TestSuites:
    """The archive of a suite: all that its numbers came from, and the numbers."""

    def test_an_archive_that_comes_out_differently_names_the_version_that_made_it(
        self, archived, tmp_path
    ):
        table = "results/suites/resnet50/summary.csv"
        with verified(archived) as opened:
            crate, rows = opened.read("ro-crate-metadata.json"), opened.read(table)
        crate = crate.replace(f'"version": "{__version__}"'.encode(), b'"version": "0.0.9"')
        changes = {"ro-crate-metadata.json": crate, table: rows.replace(b"images", b"pictures")}
        maker = r"reperf 0\.0\.9 made the archive, and rebuilds it with .* of that version; this"
        with pytest.raises(ReperfError, match=maker):
            rebuild(rewritten(archived, **changes), tmp_path / "new")
        record = "results/runs/resnet50/pytorch/1n1g/1/run.json"
        with verified(archived) as opened:
            told = json.loads(opened.read(record)) | {"git_commit": "5f" * 20}
        changes[record] = json.dumps(told).encode()
        with pytest.raises(ReperfError, match=f"requirements.txt at commit {'5f' * 20}; this is"):
            rebuild(rewritten(archived, **changes), tmp_path / "known")
        same_version = rewritten(archived, **{table: changes[table]})
        with pytest.raises(ReperfError, match=r"from line 2 on: [^;]*$"):
            rebuild(same_version, tmp_path / "newer")

    @pytest.mark.parametrize(
        "path",
        ["/dev/zero", "/etc/hostname", "..", "../secret.log", "from/..", "from", "results/runs"],
    )
    def test_nothing_outside_the_archive_is_measured(self, archived, tmp_path, path):
        (tmp_path / "secret.log").write_text("\n".join(step_log()))
        with verified(archived) as opened:
            config = json.loads(opened.read("config.json"))
        config["suites"][0]["from"] = [{"path": path}]
        crafted = rewritten(archived, **{"config.json": json.dumps(config).encode()})
        with pytest.raises(ReperfError, match=r"is no member; allowed: |allowed: a path that ends"):
            rebuild(crafted, tmp_path / "new")
        assert not (tmp_path / "new").exists()

    def test_tables_and_figures_rebuild_to_the_byte_from_the_archive_alone(
        self, archived, tmp_path, monkeypatch
    ):
        def refuse(*_: object) -> None:
            raise AssertionError("a rebuild must not ask the network")

        monkeypatch.setattr(socket, "socket", refuse)
        made = rebuild(archived, tmp_path / "new" / "folder")
        assert made.same == [*tables_of("resnet50"), *figures_of("resnet50"), README, PAGE]
        assert not made.by_another
        with verified(archived) as opened:
            for name in opened.namelist():
                assert (tmp_path / "new/folder" / name).read_bytes() == opened.read(name), name

    def test_the_same_runs_give_the_same_archive(self, archived, report, tmp_path):
        leave_suite(report)
        write_archive(report, report.runs(report.suites[0]), tmp_path / "again.zip")
        assert (tmp_path / "again.zip").read_bytes() == archived.read_bytes()

    def test_it_holds_what_the_numbers_came_from(self, archived):
        with verified(archived) as opened:
            names = set(opened.namelist())
            runs = [f"results/runs/resnet50/pytorch/1n{g}g/{k}" for g in (1, 2) for k in (1, 2)]
            assert names >= {f"{run}/{name}" for run in runs for name in ("train.log", "run.json")}
            assert names >= {"envs/pytorch.txt", "workflow/workloads/resnet50.yaml"}
            systems, trainers = "workflow/systems/pytorch", "workflow/trainers"
            assert names >= {f"{trainers}/train.py", f"{systems}/system.yaml"}
            assert names >= {f"{trainers}/contract/steplog.py", f"{trainers}/recipes/resnet50.py"}
            assert not any("vgg16" in name for name in names)
            assert load_report(json.loads(opened.read("config.json"))).suites[0].name == "resnet50"
            cells = CELL_LIST.validate_json(opened.read("cells.json"))
        assert [bool(cell.unsupported) for cell in cells] == [False, False, True, True]

    def test_every_try_is_archived(self, report, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        leave_suite(report)
        Path("results/runs/resnet50/pytorch/1n1g/1/tries/1/train.log").write_text("cut")
        write_archive(report, report.runs(report.suites[0]), Path("a.zip"))
        with verified(Path("a.zip")) as opened:
            assert opened.read("results/runs/resnet50/pytorch/1n1g/1/tries/1/train.log") == b"cut"

    def test_a_suite_of_which_nothing_can_run_is_archived_and_rebuilt(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        suite = SUITE["suites"][0] | {"systems": [GPUS_ONLY]}
        report = load_report(SUITE | {"suites": [suite]}).alone("resnet50")
        leave_suite(report)
        write_archive(report, report.runs(report.suites[0]), Path("a.zip"))
        assert rebuild(Path("a.zip"), Path("new"))

    def test_an_archive_of_the_variant_that_bfloat16_was_is_rebuilt(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        suite = SUITE["suites"][1] | {"systems": [{"system": "pytorch", "variants": "bf16"}]}
        asked = SUITE | {"suites": [suite], "device": "cuda", "build": "lock"}
        report = load_report(asked, archived=True)
        leave_suite(report)
        write_archive(report, report.runs(report.suites[0]), Path("a.zip"))
        assert len(rebuild(Path("a.zip"), Path("new")).same) == 10

    def test_every_file_that_differs_is_named(self, archived, tmp_path):
        summary, figure = tables_of("resnet50")[1], figures_of("resnet50")[0]
        with verified(archived) as opened:
            forged_table = opened.read(summary).replace(b",ok,", b",OK,")
            forged_page = opened.read(PAGE).replace(b"</h1>", b"!</h1>")
        changes = {summary: forged_table, figure: b"<svg/>", PAGE: forged_page}
        path = rewritten(archived, **changes)
        with refused_in_one_line(f"{path}: 3 of 10 files differ") as refusal:
            rebuild(path, tmp_path / "new")
        places = [str(refusal.value).index(name) for name in changes]
        assert places == sorted(places)
        assert f"{summary} from line 2 on: " in str(refusal.value)

    def test_one_of_an_earlier_version_rebuilds_without_what_came_later(self, archived, tmp_path):
        table, first = tables_of("resnet50")[1], figures_of("resnet50", FIRST_KINDS)
        later = {*figures_of("resnet50")} - {*first}
        with verified(archived) as opened:
            crate = json.loads(opened.read(METADATA))
            rows = [*csv.reader(io.StringIO(opened.read(table).decode()))]
        graph = [one for one in crate["@graph"] if one["@id"] not in later]
        (top,) = (one for one in graph if one["@id"] == "./")
        top["hasPart"] = [part for part in top["hasPart"] if part["@id"] not in later]
        (maker,) = (one for one in graph if one["@id"] == REPERF)
        maker["version"] = "0.0.9"
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows(row[:31] for row in rows)
        text = text.getvalue()
        changes = {METADATA: json.dumps(crate | {"@graph": graph}).encode(), table: text.encode()}
        made = rebuild(rewritten(archived, **changes, **dict.fromkeys(later)), tmp_path / "new")
        assert {*made.same, *made.by_another} == {*tables_of("resnet50"), *first, README, PAGE}
        assert made.by_another[table][1].startswith(" without ")
        changes[table] = text.replace(",ok,", ",OK,", 1).encode()
        forged = rewritten(archived, **changes, **dict.fromkeys(later))
        with refused_in_one_line(f"{forged}: 1 of 8 files differ"):
            rebuild(forged, tmp_path / "other")

    def test_logs_of_others_are_on_the_page_that_rebuilds(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        Path("theirs").mkdir()
        Path("theirs/one.log").write_text("\n".join(step_log()))
        suite = SUITE["suites"][0] | {"systems": [], "from": "theirs"}
        report = load_report(SUITE | {"suites": [suite]})
        leave_suite(report)
        write_archive(report, [], Path("a.zip"))
        assert PAGE in rebuild(Path("a.zip"), Path("new")).same
        page = Path("new", PAGE).read_text()
        assert "from theirs" in page
        assert ">None<" not in page

    def test_it_explains_itself(self, archived):
        with verified(archived) as opened:
            readme, page = opened.read(README).decode(), opened.read(PAGE).decode()
        assert readme.startswith("two repeats: resnet50\n")
        assert f"reperf {__version__} made it" in readme
        for command in ("sha256sum --check", "reperf archive verify", "reperf archive rebuild"):
            assert command in readme
        assert "<h1>two repeats</h1>" in page
        assert "results/suites/resnet50/summary.csv" in page
        assert "Published" not in page

    def test_the_readme_names_the_commits_of_its_runs(self, report, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        leave_suite(report)
        runs = report.runs(report.suites[0])
        records = [RunRecord.read(run.record) for run in runs]
        told = {"git_commit": "5f" * 20, "git_dirty": True}
        records[0] = records[0].model_copy(update=told)
        assert (
            f"made it, its runs at commit {'5f' * 20}+.\n"
            in pages(report, records)[README].decode()
        )

    def test_pages_of_another_version_are_made_anew_and_named(self, archived, tmp_path, capsys):
        with verified(archived) as opened:
            crate, page = opened.read("ro-crate-metadata.json"), opened.read(PAGE)
        crate = crate.replace(f'"version": "{__version__}"'.encode(), b'"version": "9.9"')
        changes = {"ro-crate-metadata.json": crate, PAGE: b"<script>alert(1)</script>"}
        path = rewritten(archived, **changes)
        assert main(["archive", "rebuild", str(path), "--to", str(tmp_path / "new")]) == 0
        said = f"{tmp_path / 'new' / PAGE}: not as in {path}, which reperf 9.9 wrote"
        assert said in capsys.readouterr().out.splitlines()
        assert (tmp_path / "new" / PAGE).read_bytes() == page

    def test_ids_that_draw_nothing_and_a_page_of_an_earlier_commit_are_named(
        self, archived, tmp_path, capsys
    ):
        figure = figures_of("resnet50")[0]
        with verified(archived) as opened:
            drawn, page = opened.read(figure), opened.read(PAGE)
        earlier = drawn.replace(b'<g id="series/', b'<g id="part-')
        assert earlier != drawn
        path = rewritten(archived, **{figure: earlier, PAGE: page + b"\n"})
        assert main(["archive", "rebuild", str(path), "--to", str(tmp_path / "new")]) == 0
        who = f"in {path}, which an earlier commit of reperf {__version__} wrote"
        said = capsys.readouterr().out
        assert f"{figure}: drawn as {who} with other ids, which draw nothing\n" in said
        assert f"{PAGE}: not as {who}\n" in said
        moved = earlier.replace(b"translate(", b"translate(1", 1)
        path = rewritten(archived, **{figure: moved, PAGE: page + b"\n"})
        with refused_in_one_line(f"{path}: 2 of 10 files differ"):
            rebuild(path, tmp_path / "moved")

    def test_other_words_than_here_are_named_and_another_number_in_a_page_is_refused(
        self, archived, tmp_path, capsys
    ):
        described = "workflow/systems/pytorch/system.yaml"
        with verified(archived) as opened:
            page, system = opened.read(PAGE), opened.read(described)
        words = {
            PAGE: page.replace(b"</h1>", b", they say</h1>"),
            described: system.replace(b"title: ", b"title: Fast "),
        }
        path = rewritten(archived, **words)
        assert main(["archive", "rebuild", str(path), "--to", str(tmp_path / "new")]) == 0
        said = capsys.readouterr().out
        who = (
            f"in {path}, which an earlier commit of reperf {__version__} wrote, or somebody edited"
        )
        assert f"{PAGE}: not as {who}; the numbers in its tables are the same\n" in said
        assert f"{described}: not as this reperf has it, but as {who}; titles and units" in said
        number = re.search(rb"<b>([\d.]+)</b> images/s", page)[1]
        faster = rewritten(archived, **{PAGE: page.replace(number, b"9" + number)})
        with refused_in_one_line(f"{faster}: 1 of 10 files differ") as refusal:
            rebuild(faster, tmp_path / "faster")
        assert str(refusal.value).endswith(f"{PAGE}, which says 9{number.decode()}")

    def test_an_archive_without_pages_is_one_of_earlier_versions(self, archived, tmp_path):
        def drop(graph: dict) -> None:
            graph["@graph"] = [one for one in graph["@graph"] if one["@id"] not in (README, PAGE)]
            parts = entity(graph, "./")["hasPart"]
            entity(graph, "./")["hasPart"] = [p for p in parts if p["@id"] not in (README, PAGE)]

        def without_pages(folder: Path) -> None:
            edited(CRATE, drop)(folder)
            (folder / README).unlink()
            (folder / PAGE).unlink()

        earlier = forge(archived, without_pages)
        made = rebuild(earlier, tmp_path / "new")
        assert made.same == [*tables_of("resnet50"), *figures_of("resnet50")]
        assert (tmp_path / "new" / PAGE).exists()

    def test_measuring_it_takes_no_page_for_a_log(self, archived, capsys):
        assert main(["measure", "--json", str(archived)]) == 3
        found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        assert {Path(one["log"]).name for one in found} == {"train.log"}

    def test_a_changed_log_shows_even_with_a_manifest_that_fits(self, archived, tmp_path):
        log = "results/runs/resnet50/pytorch/1n1g/1/train.log"
        with verified(archived) as opened:
            faster = opened.read(log).replace(b'"seconds": 1', b'"seconds": 0.1')
        path = rewritten(archived, **{log: faster})
        with pytest.raises(ReperfError, match=r"measurements\.csv from line 2 on: "):
            rebuild(path, tmp_path / "new")

    @pytest.mark.parametrize(
        "name", ["config.json", "cells.json", "results/runs/resnet50/pytorch/1n1g/1/run.json"]
    )
    def test_what_is_not_the_archive_of_a_suite_is_refused(self, archived, tmp_path, name):
        for content in (None, b"[]", b"not JSON"):
            path = rewritten(archived, **{name: content})
            with pytest.raises(ReperfError) as refusal:
                rebuild(path, tmp_path / f"new{content}")
            assert Path(name).name in str(refusal.value)
            assert len(str(refusal.value).splitlines()) == 1

    def test_a_configuration_that_no_archive_has_is_refused(self, archived, tmp_path):
        with verified(archived) as opened:
            config = json.loads(opened.read("config.json"))
        other = {**config["suites"][0], "name": "more"}
        for change in ({"device": "auto"}, {"suites": [*config["suites"], other]}):
            path = rewritten(archived, **{"config.json": json.dumps(config | change).encode()})
            with refused_in_one_line(f"{path}: config.json: allowed: one suite, and a device"):
                rebuild(path, tmp_path / "new")

    def test_a_name_that_climbs_out_of_the_folder_writes_nothing(self, archived, tmp_path):
        with verified(archived) as opened:
            cells = opened.read("cells.json").replace(b'"resnet50"', b'"../../../../up"', 1)
        with pytest.raises(ReperfError, match=r'got "\.\./\.\./.*/up"; allowed: "resnet50"'):
            rebuild(rewritten(archived, **{"cells.json": cells}), tmp_path / "new")
        assert sorted(path.name for path in tmp_path.iterdir()) == ["resnet50.zip", "rewritten.zip"]

    def test_a_folder_with_files_is_left_alone(self, archived, tmp_path):
        (tmp_path / "mine").mkdir()
        (tmp_path / "mine/file").write_text("mine")
        for folder in (tmp_path / "mine", archived):
            with pytest.raises(ReperfError, match="allowed: a new or empty folder"):
                rebuild(archived, folder)
        assert [path.name for path in (tmp_path / "mine").iterdir()] == ["file"]

    def test_the_crate_tells_when_and_with_what_each_run_was_made(self, archived):
        with verified(archived) as opened:
            graph = json.loads(opened.read("ro-crate-metadata.json"))["@graph"]
            names = set(opened.namelist()) - {MANIFEST, "ro-crate-metadata.json"}
        entities = {entity["@id"]: entity for entity in graph}
        assert {part["@id"] for part in entities["./"]["hasPart"]} == names
        assert entities["./"]["datePublished"] == "2026-01-02T03:06:05.000+00:00"
        failed = entities["#results/runs/resnet50/pytorch/1n2g/2"]
        assert failed["actionStatus"] == "http://schema.org/FailedActionStatus"
        assert failed["error"] == "no end after 1800 s"
        trainer = entities["workflow/trainers/train.py"]
        assert failed["instrument"]["@id"] == trainer["@id"]
        assert trainer["@type"] == ["File", "SoftwareSourceCode"]


def forge(path: Path, edit: Callable[[Path], None]) -> Path:
    """An archive that somebody has edited, and whose tables, figures and manifest fit the edits."""
    folder = path.with_name("forge")
    with verified(path) as opened:
        opened.extractall(folder)
    edit(folder)
    (folder / MANIFEST).unlink()
    with chdir(folder):
        report = load_report(json.loads(Path("config.json").read_text()))
        cells = CELL_LIST.validate_json(Path("cells.json").read_text())
        suite = report.suites[0]
        summary = Path(tables_of(suite.name)[1])
        before = summary.read_text()
        for table, text in measured_tables(suite, cells).items():
            Path(table).write_text(text)
        if summary.read_text() != before:  # which alone decides the figures
            draw_suite(summary, FIGURES.format(suite=suite.name))
    files = {str(file.relative_to(folder)): file for file in folder.rglob("*") if file.is_file()}
    forgery = path.with_name("forgery.zip")
    write(forgery, [Member.of_file(name, file) for name, file in files.items()])
    return forgery


def edited(name: str, edit: Callable[[Any], None]) -> Callable[[Path], None]:
    """An edit of one JSON file."""

    def apply(folder: Path) -> None:
        content = json.loads((folder / name).read_text())
        edit(content)
        (folder / name).write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n")

    return apply


def replaced(name: str, old: str, new: str) -> Callable[[Path], None]:
    """An edit of one text file."""

    def apply(folder: Path) -> None:
        text = (folder / name).read_text()
        assert old in text
        (folder / name).write_text(text.replace(old, new))

    return apply


RUN = "results/runs/resnet50/pytorch/1n1g/1"
"""The slowest of its cell."""


def without_the_slow_run(folder: Path) -> None:
    edited("cells.json", lambda cells: cells[0]["runs"].pop(0))(folder)
    shutil.rmtree(folder / RUN)


def unsupported(folder: Path) -> None:
    edited("cells.json", lambda cells: cells[0].update(unsupported="no GPU"))(folder)
    for repeat in (1, 2):
        shutil.rmtree(folder / f"results/runs/resnet50/pytorch/1n1g/{repeat}")


def of_larger_images(folder: Path) -> None:
    edited("config.json", lambda config: config["suites"][0]["shape"].update(image_size=320))(
        folder
    )
    replaced("cells.json", '"image_size": 224', '"image_size": 320')(folder)


def of_an_unplanned_run(folder: Path) -> None:
    shutil.copytree(folder / RUN, folder / "results/runs/resnet50/pytorch/1n4g/1")


def of_another_repeat(folder: Path) -> None:
    shutil.copy(folder / "results/runs/resnet50/pytorch/1n1g/2/run.json", folder / RUN)


def of_less_memory(folder: Path) -> None:
    record = RunRecord.read(folder / RUN / "run.json")
    record.model_copy(update={"peak_memory_bytes": (1,)}).write(folder / RUN / "run.json")


def of_record(**update: object) -> Callable[[Path], None]:
    """A run's record and that of its try, changed alike."""

    def apply(folder: Path) -> None:
        for path in (folder / RUN / "run.json", folder / RUN / "tries/1/run.json"):
            RunRecord.read(path).model_copy(update=update).write(path)

    return apply


def of_plan(**update: object) -> Callable[[Path], None]:
    """A run's plan, that of its try, and both records, changed alike."""

    def apply(folder: Path) -> None:
        for place in (folder / RUN, folder / RUN / "tries/1"):
            plan = RunPlan.read(place / "plan.json")
            plan = RunPlan.model_validate(plan.model_dump() | update)
            (place / "plan.json").write_text(plan.text)
            record = RunRecord.read(place / "run.json")
            record.model_copy(update={"plan": plan.digest}).write(place / "run.json")

    return apply


def of_another_end(folder: Path) -> None:
    path = folder / RUN / "tries/1/run.json"
    RunRecord.read(path).model_copy(update={"seconds": 1.0}).write(path)


def of_fewer_tries(folder: Path) -> None:
    (folder / RUN / "tries/1").rename(folder / RUN / "tries/2")


def of_an_earlier_version(folder: Path) -> None:
    """With another trainer: earlier versions had digests of other things."""
    FORGERIES["another trainer"][0](folder)
    for path in folder.glob("results/runs/*/*/*/*/run.json"):
        RunRecord.read(path).model_copy(update={"record_version": 6}).write(path)


def entity(graph: dict, name: str) -> dict:
    return next(one for one in graph["@graph"] if one["@id"] == name)


CRATE = "ro-crate-metadata.json"
LATER = "2026-01-02T03:06:05.000+00:00"
ENDED = re.escape(LATER)

FORGERIES = {
    "one repeat twice": (
        edited("cells.json", lambda cells: cells[0].update(runs=cells[0]["runs"][:1] * 2)),
        r"cells\.json: 1\.runs\.2\.repeat: got 1; allowed: 2, as config\.json asks",
    ),
    "without the slow run": (
        without_the_slow_run,
        r"cells\.json: 1\.runs\.1\.repeat: got 2; allowed: 1, as config\.json asks",
    ),
    "measured, and called unsupported": (
        unsupported,
        r'cells\.json: 1\.unsupported: got "no GPU"; allowed: null, as config\.json asks',
    ),
    "other images": (
        of_larger_images,
        rf"{RUN}/run\.json: image_size is 224 by the run record, 320 by the configuration",
    ),
    "a run that nobody asked for": (
        of_an_unplanned_run,
        r"pytorch/1n4g/1/plan\.json: belongs to no run or log that config\.json asks for",
    ),
    "one record for two runs": (
        of_another_repeat,
        rf"{RUN}/run\.json: repeat is 2 by the run record, 1 by the configuration",
    ),
    "less memory, sealed anew": (
        of_less_memory,
        rf"{RUN}/run\.json: peak_memory_bytes\.1: got 1; allowed: null, as train\.log beside it",
    ),
    "another end of its try": (
        of_another_end,
        rf"{RUN}/run\.json: seconds: got 60\.0; allowed: 1\.0, as the last of its tries has it",
    ),
    "without a try": (
        of_fewer_tries,
        rf"{RUN}/run\.json: tries\.1: got 2; allowed: 1, as the last of its tries has it",
    ),
    "another log of its try": (
        replaced(f"{RUN}/tries/1/train.log", "rank 0: done", "rank 0: gone"),
        rf'{RUN}/tries/1/run\.json: log_sha256: got "[0-9a-f]{{64}}"; allowed: "[0-9a-f]{{64}}"',
    ),
    "a file that no run leaves": (
        lambda folder: (folder / RUN / "tries/1/more.py").write_text(""),
        r"tries/1/more\.py: belongs to no run or log that config\.json asks for",
    ),
    "another command": (
        of_record(command=("python", "fast.py")),
        rf"{RUN}/run\.json: command\.1: got null; allowed: \"[^\"]*/train\.py\", as plan",
    ),
    "an end before its beginning": (
        of_record(ended="2026-01-01T00:00:00.000+00:00"),
        rf"{RUN}/run\.json: seconds: got 60\.0; allowed: -[0-9.]+, as train\.log beside it says",
    ),
    "a failure that its log does not know": (
        of_record(status="failed", reason="slow"),
        rf'{RUN}/run\.json: status: got "failed"; allowed: "ok", as train\.log beside it says',
    ),
    "other packages": (
        of_record(
            environment=Environment(
                lock="envs/pytorch.txt",
                lock_sha256=sha256(ROOT / "envs/pytorch.txt"),
                python="3.11",
                packages={"numpy": "9.9"},
            )
        ),
        rf'{RUN}/run\.json: packages\.numpy: got "9\.9"; allowed: "{PINS["numpy"]}", as the',
    ),
    "variables that no system asks for": (
        of_plan(variables={"FAST": "1"}),
        rf'{RUN}/run\.json: variables\.MKL_NUM_THREADS: got null; allowed: "1", as the archived',
    ),
    "another data set": (
        of_plan(data="5f" * 32),
        rf'{RUN}/run\.json: data: got "5f5f[0-9a-f]*"; allowed: "[0-9a-f]{{64}}", as config',
    ),
    "another window": (
        edited("config.json", lambda config: config["suites"][0]["window"].update(measured=80)),
        rf"{RUN}/run\.json: aside\.window\.2: got 120; allowed: 100, as config\.json asks",
    ),
    "another trainer": (
        replaced("workflow/trainers/recipes/resnet50.py", "import", "import os\nimport"),
        rf'{RUN}/run\.json: trainer: got "[0-9a-f]{{64}}"; allowed: "[0-9a-f]{{64}}", as the',
    ),
    "another trainer, and records called old": (
        of_an_earlier_version,
        rf"{RUN}/run\.json: record_version: got 6; allowed: 7, as the digest of plan\.json",
    ),
    "another way to launch": (
        replaced("workflow/systems/pytorch/system.yaml", "torch.distributed.run", "torch.fast"),
        rf'{RUN}/run\.json: launch\.2: got "torch\.distributed\.run"; allowed: "torch\.fast", as',
    ),
    "code that no run needs": (
        lambda folder: (folder / "workflow/trainers/more.py").write_text("faster = True"),
        r"workflow/trainers/more\.py: belongs to no run or log that config\.json asks for",
    ),
    "without a part of the trainer": (
        lambda folder: (folder / "workflow/trainers/frameworks/torch/resnet50.py").unlink(),
        r"workflow/trainers/frameworks/torch/resnet50\.py is not in it; its runs need it",
    ),
    "a trainer that nothing can read": (
        lambda folder: (folder / "workflow/trainers/recipes/resnet50.py").write_bytes(b"\xff"),
        rf"{RUN}/run\.json: the archived trainer is not text: ",
    ),
    "another lock": (
        replaced("envs/pytorch.txt", "numpy==", "numpy==9."),
        rf'{RUN}/run\.json: lock_sha256: got "[0-9a-f]{{64}}"; allowed: "[0-9a-f]{{64}}", as the',
    ),
    "another day": (
        replaced(CRATE, LATER, "2020-01-02T03:06:05.000+00:00"),
        rf'{CRATE}: @graph\.\./\.datePublished: got "2020[^"]*"; allowed: "{ENDED}", as the other',
    ),
    "another end": (
        edited(CRATE, lambda graph: entity(graph, f"#{RUN}").update(endTime=LATER)),
        rf'{CRATE}: @graph\.#{RUN}\.endTime: got "{ENDED}"; allowed: "2026-01-02T03:05',
    ),
    "a failure called complete": (
        replaced(CRATE, "schema.org/FailedActionStatus", "schema.org/CompletedActionStatus"),
        r'1n2g/2\.actionStatus: got "[^"]*/CompletedActionStatus"; allowed: "[^"]*/FailedAction',
    ),
    "metadata of nothing": (
        edited(CRATE, lambda graph: graph.update({"@graph": {"@id": "./"}})),
        rf"{CRATE}: @graph: got ",
    ),
}


class TestForgeries:
    """Archives whose parts were changed to fit each other, and still say two things."""

    @pytest.mark.parametrize(("edit", "fault"), FORGERIES.values(), ids=FORGERIES)
    def test_what_does_not_follow_is_refused_with_both_values(
        self, archived, tmp_path, edit, fault
    ):
        forgery = forge(archived, edit)
        with verified(forgery), refused_in_one_line(f"{forgery}: ") as refusal:
            rebuild(forgery, tmp_path / "new")
        assert re.search(fault, str(refusal.value)), str(refusal.value)

    def test_the_trainer_is_not_taken_for_that_of_an_archive_unpacked_there_before(
        self, archived, tmp_path
    ):
        edit, fault = FORGERIES["another trainer"]
        forgery, folder = forge(archived, edit), tmp_path / "new"
        rebuild(archived, folder)
        shutil.rmtree(folder)
        with pytest.raises(ReperfError, match=fault):
            rebuild(forgery, folder)

    @pytest.mark.parametrize("build", ["lock", "image"])
    def test_the_archived_code_of_every_system_has_its_digest(self, tmp_path, build):
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

    def test_other_versions_of_libraries_are_no_forgery(self, archived, tmp_path):
        other = forge(archived, replaced(CRATE, f"numpy {version('numpy')}", "numpy 1.0"))
        assert rebuild(other, tmp_path / "new")

    def test_what_the_gpus_decided_is_in_an_archive_and_before_that_in_its_cells(
        self, tmp_path, monkeypatch
    ):
        monkeypatch.chdir(tmp_path)
        suite = SUITE["suites"][0] | {"systems": ["pytorch", "mxnet"]}
        report = load_report(SUITE | {"device": "cuda", "build": "lock", "suites": [suite]})
        decided = Hardware(locks={"pytorch": "volta"}, unfit={"mxnet": {"lock": "the GPU is new"}})
        report = report.model_copy(update={"hardware": decided})
        leave_suite(report)
        write_archive(report, report.runs(report.suites[0]), Path("a.zip"))
        assert rebuild(Path("a.zip"), Path("new"))
        with verified(Path("a.zip")) as opened:
            assert load_report(json.loads(opened.read("config.json"))).hardware == decided

        def of_earlier(config: dict) -> None:
            del config["hardware"]

        earlier = forge(Path("a.zip"), edited("config.json", of_earlier))
        assert rebuild(earlier, Path("earlier"))

        def measured_as_unsupported(cells: list) -> None:
            for cell in cells:
                cell["unsupported"] = "the GPU is new"

        shutil.rmtree("forge")
        forgery = forge(earlier, edited("cells.json", measured_as_unsupported))
        with pytest.raises(ReperfError, match=r"volta\.txt: belongs to no run or log that"):
            rebuild(forgery, Path("forged"))


class TestCommand:
    """`reperf archive`: status 0 and what was done, or status 1 and one line."""

    def test_verify_and_rebuild(self, archived, tmp_path, capsys):
        assert main(["archive", "verify", str(archived)]) == 0
        assert "all as they were archived" in capsys.readouterr().out
        assert main(["archive", "rebuild", str(archived), "--to", str(tmp_path / "new")]) == 0
        assert len(capsys.readouterr().out.splitlines()) == 10

    def test_several_are_verified_and_each_fault_is_told(self, archived, tmp_path, capsys):
        broken = tmp_path / "broken.zip"
        broken.write_bytes(archived.read_bytes()[:-1])
        assert main(["archive", "verify", str(archived), str(broken), str(archived)]) == 1
        said = capsys.readouterr()
        assert said.out.count("all as they were archived") == 2
        assert said.err.startswith(f"reperf: {broken}: ")
        assert said.err.count("\n") == 1

    def test_a_changed_archive_is_refused_by_both(self, archived, tmp_path, capsys):
        content = bytearray(archived.read_bytes())
        content[len(content) // 2] ^= 4
        archived.write_bytes(content)
        calls = (["verify", str(archived)], ["rebuild", str(archived), "--to", "new"])
        for call in calls:
            assert main(["archive", *call]) == 1
            message = capsys.readouterr().err
            assert message.startswith(f"reperf: {archived}: ")
            assert message.count("\n") == 1
        assert not (tmp_path / "new").exists()
