"""Each run counts once, in whatever form its log lies there again."""

import re
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from reperf.config import Suite
from reperf.measuring.suite_rows import measure_suite

from tests.helpers.runs import RUN, kept_run
from tests.helpers.step_logs import step_log
from tests.unit.logs.written import uneven
from tests.unit.measuring.test_suite_rows import LIKE_OURS, RESNET50, SUITE, rows_of

SAME_WINDOW = "the same lines or times in the window"
SECOND = RUN.model_copy(update={"repeat": 2, "seed": 2})


def log_in(
    folder: Path, text: str = RESNET50, name: str = "r50_b128_fp32_1.log", topology: str = "2n8g"
) -> Path:
    path = folder / topology / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def counted(rows: list[dict]) -> tuple[int, list[str]]:
    """How many rows count, and the reasons of the others."""
    assert {row["status"] for row in rows} <= {"ok", "refused"}
    assert all(row["throughput"] is None for row in rows if row["status"] == "refused")
    reasons = [row["reason"] for row in rows if row["status"] == "refused"]
    return len(rows) - len(reasons), reasons


def written(change: Callable[[str], str]) -> Callable[[Path, Path], None]:
    """A log that says the same in other words."""

    def write(log: Path, other: Path) -> None:
        text = change(log.read_text())
        assert text != log.read_text()
        other.write_text(text)

    return write


def zipped(log: Path, _other: Path) -> None:
    with zipfile.ZipFile(log.with_name("all.zip"), "w") as members:
        members.write(log, f"2n8g/{log.name}")


@pytest.mark.parametrize(
    ("again", "why"),
    [
        (shutil.copy, "the same file"),
        (lambda log, other: other.hardlink_to(log), "the same file"),
        (lambda log, other: other.symlink_to(log.name), "the same file"),
        (zipped, "the same file"),
        (written(lambda text: f"{text}\n"), SAME_WINDOW),
        (written(lambda text: f"hello\n{text}"), SAME_WINDOW),
        (written(lambda text: re.sub("(?m)^", "[1,0]<stdout>:", text)), SAME_WINDOW),
        (written(lambda text: text.replace("loss: 1.050499", "loss: 1.05")), SAME_WINDOW),
    ],
)
def test_a_log_that_lies_there_twice_counts_once(tmp_path, again, why):
    log = log_in(tmp_path / "theirs")
    again(log, log.with_name("r50_b128_fp32_2.log"))
    rows = rows_of(tmp_path / "theirs")
    first = next(row["log"] for row in rows if row["status"] == "ok")
    assert counted(rows) == (1, [f"counted already, as {first}: {why}"])
    assert [row["repeat"] for row in rows] == [1, 2]


LATER = 86_400_000  # milliseconds: a day


@pytest.mark.parametrize(
    ("name", "workload", "changed", "into"),
    [
        ("torchtitan", "bert-base", r"2020-09-15", "2020-09-16"),
        ("oneflow-resnet50", "resnet50", r"loss: \S+", "loss: 1.0,"),
        ("megatron", "bert-base", r"lm loss: \S+", "lm loss: 1.0"),
        ("pytorch-resnet50", "resnet50", r"Loss \S+", "Loss 1.0"),
        ("ngc-mxnet-resnet50", "resnet50", r"2020-09-15", "2020-09-16"),
        ("mlperf", "resnet50", r"(?<=_ms\": )\d+", lambda one: str(int(one[0]) + LATER)),
    ],
)
def test_a_copy_is_known_by_its_times_whatever_else_is_changed(
    tmp_path, name, workload, changed, into
):
    text = "".join(f"{line}\n" for line in uneven(name))
    copy = re.sub(changed, into, text)
    assert copy != text
    for repeat, log in enumerate((text, copy)):
        log_in(tmp_path, log, f"x_b8_fp32_{repeat}.log", "2n2g")
    count, [reason] = counted(rows_of(tmp_path, workload=workload))
    assert count == 1
    assert reason.endswith(f"/2n2g/x_b8_fp32_0.log: {SAME_WINDOW}")


@pytest.mark.parametrize("step_time", ["{:.3f}", "{:.0f}.000"])
def test_repeats_that_ran_at_the_same_time_all_count(tmp_path, step_time):
    """Some of their lines have the same milliseconds, several in a row, or whole seconds."""
    for repeat in range(3):
        times = {n: 1.6e9 + 2 * n + max(0, n - 60) * repeat / 1e3 for n in range(20, 121, 5)}
        lines = (
            f"train: epoch 0, iter {n}, loss: {repeat:.4f}, top_1: 0.001, top_k: 0.005, "
            f"samples/s: 1024.0 {step_time.format(at)}\n"
            for n, at in times.items()
        )
        log_in(tmp_path, "".join(lines), f"x_b256_fp32_{repeat}.log", "1n8g")
    assert counted(rows_of(tmp_path)) == (3, [])


def test_runs_with_a_coarse_and_steady_clock_all_count(tmp_path):
    """Two of them may well take the same times. The clock is of whole seconds."""
    for repeat, began in enumerate((1_600_000_000, 1_600_099_999)):
        lines = (
            f"{n}\timages/sec: 512.0 +/- 0.4 (jitter = 0.7)\t7.{n}1 {began + 2 * n}\n"
            for n in range(10, 201, 10)
        )
        head = "Batch size:  1024 global\n             256 per device\n"
        log_in(tmp_path, head + "".join(lines), f"x_b256_fp32_{repeat}.log", "1n4g")
    assert counted(rows_of(tmp_path)) == (2, [])


def test_a_log_in_two_sources_counts_once(tmp_path):
    log_in(tmp_path / "a")
    log_in(tmp_path / "b")
    window = {"warmup": 20, "measured": 100}
    rows = rows_of(tmp_path / "a", {"path": str(tmp_path / "b"), "window": window})
    same = "counted already, as a/2n8g/r50_b128_fp32_1.log: the same file"
    assert counted(rows) == (1, [same])


def test_a_log_refused_for_itself_is_no_first(tmp_path):
    log_in(tmp_path, name="r50_b96_fp32_1.log")  # its path contradicts it
    log_in(tmp_path, name="r50_b128_fp32_2.log")
    count, [reason] = counted(rows_of(tmp_path))
    assert count == 1
    assert "counted already" not in reason


def test_our_own_run_counts_once_whatever_copy_lies_beside_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shutil.copytree(kept_run(RUN.folder, step_log()), tmp_path / "theirs" / "1")
    kept_run(SECOND.folder, [*step_log(), "more"], run=SECOND)
    ours, theirs = {"systems": ["pytorch"]}, {"name": "small", "from": str(tmp_path / "theirs")}
    for asked, runs, why in (
        (ours, [RUN], []),
        (theirs, [RUN], ["the same file"]),  # its copy
        (ours, [RUN, SECOND], [SAME_WINDOW]),  # in another repeat's place
    ):
        rows = measure_suite(Suite.model_validate(SUITE | LIKE_OURS | asked), runs)
        assert counted(rows) == (1, [f"counted already, as {RUN.log}: {one}" for one in why])


EIGHT = {"started": "2026-11-20T08:00:00+00:00", "ended": "2026-11-20T08:05:00+00:00"}
FOUR_PAST = {"started": "2026-11-20T08:04:00+00:00", "ended": "2026-11-20T08:09:00+00:00"}
FIVE_PAST = FOUR_PAST | {"started": "2026-11-20T08:05:00+00:00"}


@pytest.mark.parametrize(
    ("first", "second", "why"),
    [
        (EIGHT, EIGHT, ["the same run by its record"]),
        (EIGHT, FOUR_PAST, ["the same time on the same host, h"]),
        (EIGHT, FIVE_PAST, []),
        # Slurm may run several jobs on a node at a time.
        (EIGHT | {"slurm_job": "7"}, FOUR_PAST | {"slurm_job": "8"}, []),
        (
            EIGHT | {"slurm_job": "7"},
            FOUR_PAST | {"slurm_job": "7"},
            ["the same time on the same host, h, job 7"],
        ),
    ],
)
def test_one_host_does_one_recorded_run_at_a_time(tmp_path, first, second, why):
    kept_run(tmp_path / "1", step_log(), **first)
    kept_run(tmp_path / "2", step_log(rate=99.0), run=SECOND, **second)
    count, reasons = counted(rows_of(tmp_path, **LIKE_OURS))
    assert (count, [reason.partition(": ")[2] for reason in reasons]) == (2 - len(why), why)


def at(start: int, rate: float, host: str = "node1") -> str:
    """A log whose lines tell when they were printed, in seconds since 1970."""
    lines, seconds = [], 1000.0
    for line in step_log(rate=rate):
        if found := re.search(r'"seconds": ([0-9.]+)', line):
            seconds = float(found[1])
        stamp = f'"time_ms": {int(1000 * (start + seconds))}'
        lines.append(line.replace('"time_ms": 0', stamp).replace("on node1", f"on {host}"))
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize(
    ("start", "host", "count"),
    [(1_700_000_003, "node1", 1), (1_700_000_003, "node2", 2), (1_700_009_000, "node1", 2)],
)
def test_one_host_does_one_run_at_a_time_by_what_its_logs_say(tmp_path, start, host, count):
    (tmp_path / "1n2g").mkdir()
    (tmp_path / "1n2g/a.log").write_text(at(1_700_000_000, 100.0))
    (tmp_path / "1n2g/b.log").write_text(at(start, 99.0, host))
    found, reasons = counted(rows_of(tmp_path, **LIKE_OURS))
    assert found == count
    assert all("the same time on the same host, node1" in one for one in reasons)


@pytest.mark.parametrize(
    ("names", "later", "count"),
    [
        (("workerlog.0", "workerlog.1"), 0.001, 1),
        (("workerlog.0", "workerlog.1"), 9000, 2),
        (("rank_0.log", "rank_1.log"), 0.001, 1),
        (("rank_8.log", "rank_16.log"), 9000, 2),  # such as of LoRA
        (("run_0.log", "run_1.log"), 0.001, 2),
    ],
)
def test_the_logs_of_a_launchs_ranks_are_one_run(tmp_path, names, later, count):
    head, *_ = RESNET50.partition("train:")
    for rank, name in enumerate(names):
        late = rank * later
        lines = (
            f"train: epoch 0, iter {step}, loss: {7 + rank - step / 999:.6f}, top_1: 0.001, "
            f"top_k: 0.001, samples/s: 8192.0 {1.6e9 + late + step / (4 - rank / 1e3):.6f}\n"
            for step in range(20, 121, 20)
        )
        log_in(tmp_path, head + "".join(lines), name)
    found, reasons = counted(rows_of(tmp_path))
    assert found == count
    assert all(one.endswith(f"{names[0]}: another rank of the same run") for one in reasons)
