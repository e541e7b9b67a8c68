"""`reperf measure`: what it prints, what it asks, and its exit status."""

import csv
import gzip
import io
import json
import shutil
import sys
import zipfile
from pathlib import Path

import pytest

from tests.helpers.report_tables import caller
from tests.helpers.runs import kept_run
from tests.helpers.step_logs import step_log

LOGS = Path(__file__).parents[2] / "data" / "logs"
RESNET50 = LOGS / "oneflow_resnet50_2n8g_b128_fp32.log"
BERT = LOGS / "oneflow_bert_1n1g_b24_fp32.log"
NGC = LOGS / "ngc-pytorch_resnet50_4n8g_b128_fp32.log"
SPEED = pytest.approx(5915.65, abs=0.005)
"""Of RESNET50, in images/s."""
TAIL = "\n".join([*RESNET50.read_text().splitlines()[-2:], ""])
"""Its two lines of iterations, without what says its batch."""


@pytest.fixture
def shown(capsys):
    """Measure into a table: the exit status and the lines."""

    def shown(*arguments: object) -> tuple[int, list[str]]:
        status, out, _ = caller(capsys, "measure")(*arguments)
        return status, out.splitlines()

    return shown


@pytest.fixture
def ask(shown):
    """Measure into JSON: the exit status and the objects."""

    def ask(*arguments: object) -> tuple[int, list[dict]]:
        status, lines = shown("--json", *arguments)
        return status, [*map(json.loads, lines)]

    return ask


@pytest.fixture
def log(tmp_path):
    """Write a log of some lines or text."""

    def log(content: list[str] | str, name: str = "x.log") -> Path:
        path = tmp_path / name
        path.write_text(content if isinstance(content, str) else "\n".join([*content, ""]))
        return path

    return log


@pytest.fixture(params=["folder", "archive"])
def packed(request, tmp_path):
    """A folder to fill, and what makes of it what is measured: itself, or an archive."""
    folder = tmp_path / "logs"
    folder.mkdir()
    if request.param == "folder":
        return folder, lambda: folder
    return folder, lambda: shutil.make_archive(str(folder), "zip", folder)


def names(found: list[dict]) -> list[str]:
    return [Path(one["log"]).name for one in found]


def test_objects_have_the_promised_fields_in_order(ask):
    status, [found] = ask(RESNET50)
    facts = ["batch_size", "devices_per_node", "nodes", "workload", "world_size", "global_batch"]
    promised = {
        "log": str(RESNET50),
        "format": "oneflow-resnet50",
        "status": "ok",
        "reason": "",
        "throughput": SPEED,
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
        "sources": dict.fromkeys(facts, "the log"),
        "waited": None,
        "counted": {"samples": 204800},
        "start_loss": None,
        "evaluations": 0,
        "evaluated": 0.0,
        "time_to_train": None,
        "code": "",
        "warnings": [],
    }
    assert (status, found, list(found)) == (0, promised, list(promised))


def test_the_exit_status_says_whether_all_were_measured(ask):
    assert [ask(*logs)[0] for logs in ([RESNET50, BERT], [RESNET50, NGC], [LOGS])] == [0, 3, 3]


@pytest.mark.parametrize(
    "arguments",
    [
        *("", "nowhere.log", "LOG --format morse", "LOG --window 120:20", "LOG --window 20"),
        *("LOG --global-batch 0", "LOG --global-batch 2048 --batch-size 128", "LOG --run 0"),
        *("LOG --global-batch 2048 --topology 2n8g", "LOG --topology 2x8", "LOG --method guess"),
        *("LOG --global-batch 2048 --run 2 --batch-size 2", "LOG --csv"),
        "LOG --method published --window 20:120",
    ],
)
def test_wrong_arguments_are_two(ask, arguments):
    assert ask(*arguments.replace("LOG", str(RESNET50)).split()) == (2, [])


def test_an_empty_path_is_not_the_folder_that_one_is_in(ask):
    assert ask("") == (2, [])


def test_a_log_that_ends_too_early_names_a_window_that_can_be_asked_for(ask, log):
    path = log(step_log(iterations=99, every=3))
    status, [refused] = ask(path, "--window", "20:120")
    assert (status, refused["code"]) == (3, "too-short")
    assert (refused["first_printed"], refused["last_printed"]) == (3, 99)
    assert (refused["interval"], refused["widest"]) == (3, [21, 99])
    for window in ("all", "21:99"):
        status, [found] = ask(path, "--window", window)
        assert (status, found["first"], found["last"], found["samples"]) == (0, 21, 99, 78 * 16)


def test_the_published_method(ask):
    status, found = ask(RESNET50, BERT, "--method", "published")
    assert (status, [one["throughput"] for one in found]) == (0, [5915.65, 140.2])
    assert {one["method"] for one in found} == {"published"}


def test_facts_come_from_the_path(ask, tmp_path):
    folder = tmp_path / "2n8g"
    folder.mkdir()
    (folder / "r50_b128_fp32_1.log").write_text(TAIL)
    status, [found] = ask(folder)
    assert (status, found["throughput"], found["world_size"]) == (0, SPEED, 16)
    shutil.copy(RESNET50, folder / "r50_b96_fp32_2.log")
    _, [refused, _] = ask(folder)  # 96 comes before 128
    assert refused["reason"] == "batch size per device is 128 by the log, 96 by the path"


def test_facts_come_from_the_command_line_for_all_runs_or_for_one(ask, log):
    assert "global batch is not known" in ask(log(TAIL))[1][0]["reason"]
    for facts in (("--global-batch", 2048), ("--batch-size", 128, "--topology", "2n8g")):
        status, [found] = ask(log(TAIL), *facts)
        assert (status, found["throughput"]) == (0, SPEED)
    _, [refused] = ask(RESNET50, "--topology", "4n8g")
    assert refused["reason"] == "number of nodes is 2 by the log, 4 by the command line"
    named = (log(TAIL + again(TAIL)), "--topology", "2n8g", "--run", 1, "--batch-size", 128)
    status, [found] = ask(*named)
    assert (status, found["run"], found["throughput"]) == (0, 1, SPEED)
    assert found["sources"]["batch_size"] == "the command line"
    status, [found, refused] = ask(*named, "--run", 2, "--batch-size", 96)
    assert (status, found["status"], refused["run"]) == (3, "ok", 2)
    assert "the global batch is 1536 under a world size of 16" in refused["reason"]
    _, [found, missing] = ask(*named, "--run", 3)
    assert (found["status"], missing["run"]) == ("ok", 3)
    assert missing["reason"] == "it holds no run 3: the last is run 2"


def test_facts_come_from_a_run_record_beside_the_log(ask, tmp_path):
    kept_run(tmp_path / "1", step_log())
    kept_run(tmp_path / "2", step_log(), status="oom", reason="no memory left")
    kept_run(tmp_path / "3", step_log(world=4))
    (kept_run(tmp_path / "4", step_log()) / "run.json").write_text('{"name": "another tool"}')
    assert [(one["status"], one["reason"]) for one in ask(tmp_path)[1]] == [
        ("ok", ""),
        ("refused", "the run ended as oom: no memory left"),
        ("refused", "world size is 4 by the log, 2 by the run record"),
        ("ok", ""),
    ]


def again(text: str) -> str:
    """The same lines ten thousand seconds later."""
    return text.replace("15979339", "15989339")


def test_two_runs_in_a_log_are_told_apart(ask, shown, log):
    path = log(RESNET50.read_text() + again(RESNET50.read_text()))
    assert [one["throughput"] for one in ask(path)[1]] == [SPEED, SPEED]
    _, lines = shown(path)
    assert [line.partition("x.log")[2] for line in lines[2:4]] == [" run 1", " run 2"]


@pytest.mark.parametrize(
    ("plan", "window"),
    [
        ('{"aside": {"window": [40, 100]}}', (40, 100)),
        ('{"aside": {}}', (20, 120)),
        ("", (20, 120)),
    ],
)
def test_a_run_of_ours_is_measured_in_the_window_of_its_plan(ask, tmp_path, plan, window):
    (kept_run(tmp_path / "1", step_log()) / "plan.json").write_text(plan)
    _, [found] = ask(tmp_path)
    assert (found["first"], found["last"], found["status"]) == (*window, "ok")
    _, [found] = ask("--window", "60:80", tmp_path)
    assert (found["first"], found["last"]) == (60, 80)


def test_earlier_tries_of_a_kept_run_are_no_runs_of_their_own(ask, tmp_path):
    folder = kept_run(tmp_path / "1", step_log())
    shutil.copytree(folder, tmp_path / "2" / "tries" / "1")
    shutil.copytree(folder, tmp_path / "2", dirs_exist_ok=True)
    assert len(ask(tmp_path)[1]) == 2
    shutil.make_archive(str(tmp_path / "x"), "zip", tmp_path, "2")
    _, [found] = ask(tmp_path / "x.zip")
    assert found["log"] == f"{tmp_path}/x.zip/2/train.log"


def test_a_file_that_cannot_be_read_says_why(ask):
    status, [found] = ask("/proc/self/mem")
    assert (status, found["reason"]) == (3, "cannot be read: Invalid argument")


@pytest.mark.parametrize("name", ["pytorch_gpu8_bs96", "workerlog.0", "train.log.2", "T.LOG"])
def test_a_folder_holds_logs_without_an_ending_and_other_files(ask, packed, name):
    folder, made = packed
    shutil.copy(RESNET50, folder / name)
    (folder / "LICENSE").write_text("Everyone is permitted to copy and distribute.\n" * 9)
    (folder / "program").write_bytes(b"\x7fELF\0\0" + RESNET50.read_bytes())
    (folder / "train.py").write_text('print("step 1, step 2")\n' * 9)
    (folder / "requirements.txt").write_text("numpy\ntorch==2.0\nepochs\n")
    (folder / "figure.png").write_bytes(b"\x89PNG")
    (folder / ".hidden").mkdir()
    shutil.copy(RESNET50, folder / ".hidden" / "object")
    status, found = ask(made())
    assert (status, names(found), found[0]["throughput"]) == (0, [name], SPEED)


@pytest.mark.parametrize("name", ["result_{}.txt", "node{}.out", "workerlog.{}", "gpu{}_bs96"])
def test_logs_of_no_known_format_are_listed_and_refused_in_the_order_of_people(ask, packed, name):
    folder, made = packed
    text = "".join(f"at step {step} the loss is {9 - step / 10}\n" for step in range(40))
    for number in (numbers := (0, 1, 2, 9, 10, 11, 100)):
        (folder / name.format(number)).write_text(text)
    status, found = ask(made())
    assert (status, names(found)) == (3, [name.format(n) for n in numbers])
    assert {one["reason"].split(":")[0] for one in found} == {"no known format"}


def test_one_log_of_no_known_format_is_listed_among_others_or_alone(ask, log):
    text = "".join(f"[{n}/90] loss: 6.9, 12 it/s\n" for n in range(90))
    folder = log(text, "b.txt").parent
    log("numpy\n", "c.txt")
    assert names(ask(folder)[1]) == ["b.txt"]
    shutil.copy(RESNET50, folder / "a.txt")
    status, found = ask(folder)
    assert (status, names(found)) == (3, ["a.txt", "b.txt"])


def test_logs_that_are_empty_or_compressed_are_listed_and_names_may_be_no_text(ask, tmp_path):
    (tmp_path / "empty.log").touch()
    (tmp_path / "train.log.gz").write_bytes(gzip.compress(RESNET50.read_bytes()))
    (tmp_path / "notes.gz").write_bytes(gzip.compress(b"notes"))
    shutil.copy(RESNET50, Path(str(tmp_path), b"\xff.log".decode(errors="surrogateescape")))
    status, found = ask(tmp_path)
    listed = ["empty.log", "train.log.gz", "\N{REPLACEMENT CHARACTER}.log"]
    assert (status, names(found)) == (3, listed)
    assert [one["reason"] for one in found] == ["the file is empty", "", ""]


def test_a_folder_of_other_things_holds_no_log(ask, log, tmp_path):
    for others in ({}, {"LICENSE": "Everyone may copy.\n" * 9, "Jenkinsfile": "stages {\n}\n"}):
        for name, text in others.items():
            log(text, name)
        status, [found] = ask(tmp_path)
        assert (status, found["log"]) == (3, str(tmp_path))
        assert "no log is in it" in found["reason"]


def zip_of(text: bytes) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as members:
        members.writestr("train.log", text)
    return packed.getvalue()


@pytest.mark.parametrize(
    ("pack", "reason"),
    [
        (zip_of, "it is a zip archive: give it a name that ends in .zip"),
        (lambda text: gzip.compress(text)[:-9], "it is no whole gzip file: "),
        (lambda text: text.decode().encode("utf-16-le"), "it is written in UTF-16: convert it to"),
        (lambda text: text.decode().encode("utf-16"), "it is written in UTF-16: convert it to"),
    ],
)
def test_a_log_that_is_no_text_is_refused_for_that(ask, tmp_path, pack, reason):
    (tmp_path / "train.log").write_bytes(pack(b"iter 20, loss: 7.08, samples/s: 398\n" * 9))
    status, [found] = ask(tmp_path / "train.log")
    assert status == 3
    assert found["reason"].startswith(reason)


def test_the_table_has_a_header_groups_of_verdicts_and_a_summary(shown):
    status, lines = shown(RESNET50, NGC, NGC, BERT)
    refused = f"    {NGC.name} (ngc-pytorch-resnet50, prints 1..12, every 1)"
    assert status == 3
    assert lines == [
        f"in {LOGS}",
        "",
        "2 measured",
        "throughput  unit         window  printed  every  widest  batch  format            log",
        f"   5915.65  images/s     20:120  20..120    100  20:120   2048  oneflow-resnet50  "
        f"{RESNET50.name}",
        f"    140.20  sentences/s  19:119  19..119    100  19:119     24  oneflow-bert      "
        f"{BERT.name}",
        "",
        "2 refused [too-short]: too short: it ends at iteration 12, the window at 120",
        refused,
        "    and 1 more",
        "",
        "2 measured, 2 refused: 2 too-short",
        "docs/refusals.md says what each refusal means",
        "--files shows every log that was refused",
    ]
    _, lines = shown("--files", RESNET50, NGC, NGC, BERT)
    assert lines.count(refused) == 2


def test_the_widest_window_is_taken_where_the_usual_one_is_refused(shown, log):
    for last in (98, 99):
        folder = log(step_log(iterations=last, every=1), f"{last}.log").parent
    status, lines = shown(folder)
    assert status == 0
    assert [line.split()[2] for line in lines if ".log" in line][:2] == ["20:98", "20:99"]
    assert any(line.startswith("2 measured with a warning [widest]: ") for line in lines)
    assert shown("--window", "20:120", folder)[0] == 3


def test_the_table_is_as_wide_as_the_terminal_and_shows_a_log_alone_as_named(
    shown, monkeypatch, log
):
    path = log(RESNET50.read_text(), f"{'long-' * 20}.log")
    status, lines = shown(path)
    assert (status, lines[0], lines[-1]) == (0, "1 measured", "1 measured, 0 refused")
    assert lines[2].split()[-1] == str(path)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "80")
    assert max(map(len, shown(path)[1])) == 80


def test_rows_for_a_spreadsheet_have_the_fields_of_the_objects(shown, ask, log):
    name = log(RESNET50.read_text(), "a,b.log")
    status, lines = shown("--csv", name, NGC)
    rows, (_, objects) = list(csv.DictReader(lines)), ask(name, NGC)
    assert status == 3
    assert [list(row) for row in rows] == [list(one) for one in objects]
    assert [row["reason"] for row in rows] == [one["reason"] for one in objects]
    assert (rows[0]["widest"], rows[1]["widest"], rows[1]["throughput"]) == ("20:120", "", "")
    assert rows[0]["sources"].startswith("batch_size: the log; ")
