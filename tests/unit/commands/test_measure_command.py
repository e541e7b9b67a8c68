"""`reperf measure`: what it prints, what it asks, and its exit status."""

import csv
import gzip
import io
import json
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from reperf.cli import main

from tests.helpers.step_logs import step_log
from tests.unit.measuring.test_measure import RUN, kept_run

LOGS = Path(__file__).parents[2] / "data" / "logs"
RESNET50 = LOGS / "oneflow_resnet50_2n8g_b128_fp32.log"
BERT = LOGS / "oneflow_bert_1n1g_b24_fp32.log"
NGC = LOGS / "ngc-pytorch_resnet50_4n8g_b128_fp32.log"


@pytest.fixture
def ask(capsys):
    def ask(*arguments: object) -> tuple[int, list[dict]]:
        try:
            status = main(["measure", "--json", *map(str, arguments)])
        except SystemExit as left:
            status = left.code
        return status, [json.loads(line) for line in capsys.readouterr().out.splitlines()]

    return ask


def zipped(folder: Path) -> Path:
    """A folder's files in an archive beside it."""
    return Path(shutil.make_archive(str(folder), "zip", folder))


def test_objects_have_the_promised_fields_in_order(ask):
    status, [found] = ask(RESNET50)
    assert status == 0
    assert list(found) == [
        "log", "format", "status", "reason", "throughput", "unit", "first", "last", "samples",
        "seconds", "method", "global_batch", "world_size", "run", "first_printed", "last_printed",
        "interval", "widest", "sources", "waited", "counted", "start_loss", "evaluations",
        "evaluated", "time_to_train",
    ]  # fmt: skip
    assert found == {
        "log": str(RESNET50),
        "format": "oneflow-resnet50",
        "status": "ok",
        "reason": "",
        "throughput": pytest.approx(5915.65, abs=0.005),
        "unit": "images/s",
        "first": 20,
        "last": 120,
        "samples": 204800,
        "seconds": pytest.approx(34.6200509),
        "method": "window",
        "global_batch": 2048,
        "world_size": 16,
        "run": 1,
        "first_printed": 20,
        "last_printed": 120,
        "interval": 100,
        "widest": [20, 120],
        "sources": dict.fromkeys(
            ("batch_size", "devices_per_node", "nodes", "world_size", "global_batch"), "the log"
        ),
        "waited": None,
        "counted": {"samples": 204800},
        "start_loss": None,
        "evaluations": 0,
        "evaluated": 0.0,
        "time_to_train": None,
    }


def test_the_exit_status_says_whether_all_were_measured(ask):
    assert ask(RESNET50, BERT)[0] == 0
    assert ask(RESNET50, NGC)[0] == 3
    assert ask(LOGS)[0] == 3


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("nowhere.log",),
        ("",),  # a variable that is not set
        (RESNET50, "--format", "morse"),
        (RESNET50, "--window", "120:20"),
        (RESNET50, "--window", "20"),
        (RESNET50, "--global-batch", "0"),
        (RESNET50, "--global-batch", "2048", "--batch-size", "128"),
        (RESNET50, "--global-batch", "2048", "--topology", "2n8g"),
        (RESNET50, "--topology", "2x8"),
        (RESNET50, "--run", "0"),
        (RESNET50, "--global-batch", "2048", "--run", "2", "--batch-size", "2"),
        (RESNET50, "--method", "guess"),
        (RESNET50, "--csv"),
        (RESNET50, "--method", "published", "--window", "20:120"),
    ],
)
def test_wrong_arguments_are_two(ask, arguments):
    assert ask(*arguments) == (2, [])


def test_a_window_of_ones_own_is_in_the_logs_numbers(ask):
    _, [found] = ask(NGC, "--window", "5:12")
    assert (found["first"], found["last"], found["samples"]) == (5, 12, 7 * 4096)
    assert found["throughput"] == pytest.approx(10379.67, abs=0.005)


def test_a_log_that_ends_at_99(ask, tmp_path):
    lines = step_log(iterations=99, every=1)
    (tmp_path / "x.log").write_text("".join(f"{line}\n" for line in lines))
    assert ask(tmp_path / "x.log")[1][0]["reason"] == (
        "too short: it ends at iteration 99, the window at 120"
    )
    status, [found] = ask(tmp_path / "x.log", "--window", "20:99")
    assert (status, found["last"], found["samples"]) == (0, 99, 79 * 16)


def test_the_widest_window_is_named_and_can_be_asked_for(ask, tmp_path):
    lines = step_log(iterations=99, every=3)
    (tmp_path / "x.log").write_text("".join(f"{line}\n" for line in lines))
    status, [refused] = ask(tmp_path / "x.log")
    assert (status, refused["first_printed"], refused["last_printed"]) == (3, 3, 99)
    assert (refused["interval"], refused["widest"]) == (3, [21, 99])
    status, [found] = ask(tmp_path / "x.log", "--window", "all")
    assert (status, found["first"], found["last"], found["samples"]) == (0, 21, 99, 78 * 16)


def test_a_log_without_any_window_says_so(ask):
    status, [refused] = ask(NGC, "--window", "all")
    assert (status, refused["widest"], refused["first"]) == (3, None, None)
    assert refused["reason"] == (
        "the log allows no window behind a warm-up of 20 iterations: printed are 1 to 12"
    )


def test_the_published_method(ask):
    status, found = ask(RESNET50, BERT, "--method", "published")
    assert status == 0
    assert [one["throughput"] for one in found] == [5915.65, 140.2]
    assert {one["method"] for one in found} == {"published"}


def test_facts_from_the_path(ask, tmp_path):
    folder = tmp_path / "2n8g"
    folder.mkdir()
    lines = RESNET50.read_text().splitlines()[-2:]
    (folder / "r50_b128_fp32_1.log").write_text("\n".join(lines) + "\n")
    status, [found] = ask(folder)
    assert (status, round(found["throughput"], 2), found["world_size"]) == (0, 5915.65, 16)
    shutil.copy(RESNET50, folder / "r50_b96_fp32_2.log")
    _, [refused, _] = ask(folder)  # 96 comes before 128
    assert refused["reason"] == "batch size per device is 128 by the log, 96 by the path"


def test_facts_from_the_command_line(ask, tmp_path):
    lines = RESNET50.read_text().splitlines()[-2:]
    (tmp_path / "x.log").write_text("\n".join(lines) + "\n")
    assert "global batch is not known" in ask(tmp_path / "x.log")[1][0]["reason"]
    for facts in (("--global-batch", 2048), ("--batch-size", 128, "--topology", "2n8g")):
        status, [found] = ask(tmp_path / "x.log", *facts)
        assert (status, round(found["throughput"], 2)) == (0, 5915.65)
    _, [refused] = ask(RESNET50, "--topology", "4n8g")
    assert refused["reason"] == "number of nodes is 2 by the log, 4 by the command line"


def test_a_run_record_beside_the_log_is_believed(ask, tmp_path):
    kept_run(tmp_path / "1", step_log())
    kept_run(tmp_path / "2", step_log(), status="oom", reason="no memory left")
    kept_run(tmp_path / "3", step_log(world=4))
    kept_run(tmp_path / "4", step_log()).joinpath("run.json").write_text('{"name": "another tool"}')
    status, found = ask(tmp_path)
    assert status == 3
    assert [one["status"] for one in found] == ["ok", "refused", "refused", "ok"]
    assert found[1]["reason"] == "the run ended as oom: no memory left"
    assert found[2]["reason"] == "world size is 4 by the log, 2 by the run record"
    assert RUN.world_size == 2


def test_earlier_tries_of_a_kept_run_are_no_runs_of_their_own(ask, tmp_path):
    folder = kept_run(tmp_path / "1", step_log())
    shutil.copytree(folder, tmp_path / "2" / "tries" / "1")
    shutil.copy(folder / "run.json", tmp_path / "2")
    shutil.copy(folder / "train.log", tmp_path / "2")
    assert len(ask(tmp_path)[1]) == 2
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        for path in sorted((tmp_path / "2").rglob("*")):
            archive.write(path, path.relative_to(tmp_path))
    _, [found] = ask(tmp_path / "x.zip")
    assert found["log"] == f"{tmp_path}/x.zip/2/train.log"


def test_folders_hold_other_files_too(ask, tmp_path):
    shutil.copy(RESNET50, tmp_path / "a.log")
    shutil.copy(RESNET50, tmp_path / "b.txt")
    (tmp_path / "requirements.txt").write_text("numpy\n")
    (tmp_path / "figure.png").write_bytes(b"\x89PNG")
    (tmp_path / "empty.log").touch()
    status, found = ask(tmp_path)
    assert status == 3
    assert [Path(one["log"]).name for one in found] == ["a.log", "b.txt", "empty.log"]
    assert found[2]["reason"] == "the file is empty"


def test_a_file_that_cannot_be_read_says_why(ask):
    status, [found] = ask("/proc/self/mem")
    assert (status, found["reason"]) == (3, "cannot be read: Input/output error")


def test_a_folder_without_logs_is_refused(ask, tmp_path):
    status, [found] = ask(tmp_path)
    assert status == 3
    assert "no log is in it" in found["reason"]


@pytest.mark.parametrize("name", ["result_{}.txt", "node{}.out", "workerlog.{}", "gpu{}_bs96"])
@pytest.mark.parametrize("packed", [False, True])
def test_logs_of_no_known_format_are_listed_and_refused(ask, tmp_path, name, packed):
    folder = tmp_path / "logs"
    folder.mkdir()
    for number in range(9):
        lines = [f"at step {step} the loss is {9 - step / 10}" for step in range(40)]
        (folder / name.format(number)).write_text("\n".join(lines))
    status, found = ask(zipped(folder) if packed else folder)
    assert status == 3
    names = sorted(Path(one["log"]).name for one in found)
    assert names == [name.format(number) for number in range(9)]
    assert {one["reason"].split(":")[0] for one in found} == {"no known format"}


def zip_of(text: bytes) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as members:
        members.writestr("train.log", text)
    return packed.getvalue()


@pytest.mark.parametrize(
    ("pack", "reason"),
    [
        (zip_of, "it is a zip archive: give it a name that ends in .zip"),
        (gzip.compress, "it is compressed by gzip: unpack it first"),
        (lambda text: text.decode().encode("utf-16-le"), "it is written in UTF-16: convert it to"),
        (lambda text: text.decode().encode("utf-16"), "it is written in UTF-16: convert it to"),
    ],
)
def test_a_log_that_is_no_text_is_refused_for_that(ask, tmp_path, pack, reason):
    (tmp_path / "train.log").write_bytes(pack(b"iter 20, loss: 7.08, samples/s: 398\n" * 9))
    for more in ((), ("--format", "megatron")):
        status, [found] = ask(tmp_path / "train.log", *more)
        assert status == 3
        assert found["reason"].startswith(reason)


def test_a_log_in_a_folder_that_is_compressed_alone_is_listed(ask, tmp_path):
    (tmp_path / "train.log.gz").write_bytes(gzip.compress(RESNET50.read_bytes()))
    (tmp_path / "notes.gz").write_bytes(gzip.compress(b"notes"))
    status, [found] = ask(tmp_path)
    assert (status, found["reason"]) == (3, "it is compressed by gzip: unpack it first")


def test_one_log_of_no_known_format_among_others_is_listed(ask, tmp_path):
    shutil.copy(RESNET50, tmp_path / "a.txt")
    (tmp_path / "b.txt").write_text("".join(f"[{n}/90] loss: 6.9, 12 it/s\n" for n in range(90)))
    (tmp_path / "c.txt").write_text("numpy\n")
    status, found = ask(tmp_path)
    assert (status, [Path(one["log"]).name for one in found]) == (3, ["a.txt", "b.txt"])
    (tmp_path / "a.txt").unlink()
    assert [Path(one["log"]).name for one in ask(tmp_path)[1]] == ["b.txt"]


@pytest.mark.parametrize("name", ["pytorch_gpu8_bs96", "workerlog.0", "train.log.2", "TRAIN.LOG"])
@pytest.mark.parametrize("packed", [False, True])
def test_logs_without_an_ending_are_measured(ask, tmp_path, name, packed):
    folder = tmp_path / "logs"
    folder.mkdir()
    shutil.copy(RESNET50, folder / name)
    (folder / "LICENSE").write_text("Everyone is permitted to copy and distribute.\n" * 9)
    (folder / "program").write_bytes(b"\x7fELF\0\0" + RESNET50.read_bytes())
    (folder / "train.py").write_text('print("step 1, step 2")\n' * 9)
    (folder / ".hidden").mkdir()
    shutil.copy(RESNET50, folder / ".hidden" / "object")
    status, found = ask(zipped(folder) if packed else folder)
    assert [Path(one["log"]).name for one in found] == [name]
    assert (status, round(found[0]["throughput"], 2)) == (0, 5915.65)


def test_a_folder_of_other_things_holds_no_log(ask, tmp_path):
    (tmp_path / "LICENSE").write_text("Everyone is permitted to copy and distribute.\n" * 9)
    (tmp_path / "requirements.txt").write_text("numpy\ntorch==2.0\nepochs\n")
    (tmp_path / "Jenkinsfile").write_text("pipeline {\n  stages {\n  }\n}\n")
    (tmp_path / "train.py").write_text('print("step 1, step 2")\n' * 9)
    status, [found] = ask(tmp_path)
    assert (status, found["log"]) == (3, str(tmp_path))
    assert "no log is in it" in found["reason"]


def test_two_runs_in_a_log_are_two_objects(ask, tmp_path):
    first = RESNET50.read_text()
    second = first.replace("15979339", "15989339")
    (tmp_path / "x.log").write_text(first + second)
    assert [round(one["throughput"], 2) for one in ask(tmp_path / "x.log")[1]] == [5915.65] * 2


def test_each_run_in_a_log_can_have_facts_of_its_own(ask, tmp_path):
    lines = RESNET50.read_text().splitlines()[-2:]
    first = "\n".join(lines) + "\n"
    (tmp_path / "x.log").write_text(first + first.replace("15979339", "15989339"))
    named = (tmp_path / "x.log", "--topology", "2n8g", "--run", 1, "--batch-size", 128)
    status, [found] = ask(*named)
    assert (status, found["run"], round(found["throughput"], 2)) == (0, 1, 5915.65)
    assert found["sources"]["batch_size"] == "the command line"
    status, [found, refused] = ask(*named, "--run", 2, "--batch-size", 96)
    assert (status, found["status"], refused["run"]) == (3, "ok", 2)
    assert "the global batch is 1536 under a world size of 16" in refused["reason"]
    status, [found, missing] = ask(*named, "--run", 3)
    assert (found["status"], missing["run"]) == ("ok", 3)
    assert missing["reason"] == "it holds no run 3: the last is run 2"


def test_a_name_that_is_no_text_is_printed(ask, tmp_path):
    path = Path(str(tmp_path), b"\xff.log".decode(errors="surrogateescape"))
    shutil.copy(RESNET50, path)
    status, [found] = ask(tmp_path)
    assert status == 0
    assert found["log"].endswith("\N{REPLACEMENT CHARACTER}.log")


@pytest.fixture
def shown(capsys):
    def shown(*arguments: object) -> tuple[int, list[str]]:
        status = main(["measure", *map(str, arguments)])
        return status, capsys.readouterr().out.splitlines()

    return shown


def test_the_table_has_a_header_groups_of_verdicts_and_a_summary(shown):
    status, lines = shown(RESNET50, NGC, NGC, BERT)
    assert status == 3
    gap = " " * 15
    refused = (
        f"         -{gap}20:120    1..12      1           4096  ngc-pytorch-resnet50  {NGC.name}"
    )
    assert lines == [
        f"in {LOGS}",
        "",
        "throughput  unit         window  printed  every  widest  batch  format                log",
        "",
        "2 measured",
        "   5915.65  images/s     20:120  20..120    100  20:120   2048  oneflow-resnet50      "
        + RESNET50.name,
        "    140.20  sentences/s  19:119  19..119    100  19:119     24  oneflow-bert          "
        + BERT.name,
        "",
        "2 refused: too short: it ends at iteration 12, the window at 120",
        refused,
        "    and 1 more",
        "",
        "2 measured, 2 refused",
        "--files shows every log that was refused",
    ]
    _, lines = shown("--files", RESNET50, NGC, NGC, BERT)
    assert lines[-5:] == [
        "2 refused: too short: it ends at iteration 12, the window at 120",
        refused,
        refused,
        "",
        "2 measured, 2 refused: 2 too short",
    ]


def test_reasons_of_one_kind_are_one_group_and_each_is_told(shown, tmp_path):
    for last in (98, 99):
        lines = step_log(iterations=last, every=1)
        (tmp_path / f"{last}.log").write_text("".join(f"{line}\n" for line in lines))
    _, lines = shown(tmp_path, "--files")
    assert lines[4] == "2 refused: too short"
    assert lines[5].split()[1:5] == ["20:120", "1..98", "1", "20:98"]
    assert lines[5].endswith("98.log")
    assert lines[6] == "    too short: it ends at iteration 98, the window at 120"
    assert lines[7].endswith("99.log")
    assert lines[8] == "    too short: it ends at iteration 99, the window at 120"
    assert lines[-2:] == [
        "0 measured, 2 refused: 2 too short",
        "--window all takes another window in 2 of the refused, such as 20:98",
    ]
    status, lines = shown("--window", "all", tmp_path)
    assert (status, lines[-1]) == (0, "2 measured, 0 refused")


def test_a_terminal_is_as_wide_as_it_is(shown, monkeypatch, tmp_path):
    folder = tmp_path / ("long-" * 20)
    folder.mkdir()
    shutil.copy(RESNET50, folder / "x.log")
    _, lines = shown(folder / "x.log")
    assert any(str(folder / "x.log") in line for line in lines)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "80")
    _, lines = shown(folder / "x.log")
    assert max(map(len, lines)) == 80
    assert any(line.endswith("-long-/x.log") for line in lines)


@pytest.mark.parametrize("packed", [False, True])
def test_logs_come_in_the_order_in_which_people_count(ask, tmp_path, packed):
    folder = tmp_path / "logs"
    folder.mkdir()
    names = [f"result_{n}.log" for n in (0, 1, 2, 9, 10, 11, 100)]
    for name in names:
        shutil.copy(RESNET50, folder / name)
    _, found = ask(zipped(folder) if packed else folder)
    assert [Path(one["log"]).name for one in found] == names


def test_a_log_alone_is_shown_as_it_was_named(shown):
    status, lines = shown(RESNET50)
    assert (status, lines[0].split()[0], lines[3].split()[-1]) == (0, "throughput", str(RESNET50))
    assert lines[-1] == "1 measured, 0 refused"


def test_runs_of_one_log_are_told_apart(shown, tmp_path):
    first = RESNET50.read_text()
    (tmp_path / "x.log").write_text(first + first.replace("15979339", "15989339"))
    _, lines = shown(tmp_path / "x.log")
    assert [line.partition("x.log")[2] for line in lines[3:5]] == [" run 1", " run 2"]


def test_rows_for_a_spreadsheet_have_the_fields_of_the_objects(capsys, ask, tmp_path):
    name = tmp_path / "a,b.log"
    shutil.copy(RESNET50, name)
    assert main(["measure", "--csv", str(name), str(NGC)]) == 3
    rows = list(csv.DictReader(capsys.readouterr().out.splitlines()))
    _, objects = ask(name, NGC)
    assert [list(row) for row in rows] == [list(one) for one in objects]
    for row, one in zip(rows, objects, strict=True):
        assert {key: row[key] for key in ("log", "status", "reason", "format")} == {
            key: one[key] for key in ("log", "status", "reason", "format")
        }
        assert float(row["throughput"] or 0) == (one["throughput"] or 0)
        assert row["global_batch"] == str(one["global_batch"])
    assert (rows[0]["widest"], rows[1]["widest"], rows[1]["throughput"]) == ("20:120", "", "")
    assert rows[0]["sources"].startswith("batch_size: the log; ")


def test_the_command_itself(tmp_path):
    command = [Path(sys.executable).with_name("reperf"), "measure", RESNET50]
    answer = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert answer.returncode == 0, answer.stderr
    assert "5915.65" in answer.stdout
