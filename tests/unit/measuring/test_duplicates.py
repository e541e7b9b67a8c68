"""Each run counts once, in whatever form its log lies there again."""

import re
import shutil
import zipfile
from collections.abc import Iterator
from io import BytesIO

import pytest
from reperf.config import Suite
from reperf.logs.facts import Facts
from reperf.logs.formats import formats
from reperf.measuring.duplicates import DuplicateFinder
from reperf.measuring.found_logs import RunResult
from reperf.measuring.measure import Fingerprint, Measurement, Method, measure_log
from reperf.measuring.suite_rows import measure_suite

from tests.helpers.runs import RUN, kept_run, record_of
from tests.helpers.step_logs import planned_log, step_log
from tests.unit.logs.written import STYLES, uneven
from tests.unit.measuring.test_suite_rows import LIKE_OURS, NAME, RESNET50, SUITE, log_in, rows_of

FILE, RECORD = "the same file", "the same run by its record"
SAME_WINDOW = "the same lines or times in the window"
RANK, HOST = "another rank of the same run", "the same time on the same host, "


def result(
    log: str,
    shown: str,
    *,
    span: tuple[float, float] | None = None,
    hosts: str = "",
    digest: str = "",
    run: int = 1,
    **record: object,
) -> RunResult:
    """A run with a log, of whose window something is shown; with a record if anything is said."""
    measured = Measurement(log, "mllog", "ok", run=run)
    facts = Facts().add("the log", [("hosts", hosts.split())])
    known = record_of(**record) if record else None
    return RunResult(measured, facts, known, digest=digest, fingerprint=Fingerprint(shown, span))


def on(host: str, start: float) -> dict:
    return {"hosts": host, "span": (start, start + 300.0)}


def recorded(start: str, end: str, **more: object) -> dict:
    return {"started": f"2026-11-20T08:{start}:00", "ended": f"2026-11-20T08:{end}:00", **more}


@pytest.mark.parametrize(
    ("one", "other", "why"),
    [
        ({}, {}, ""),
        ({"digest": "d"}, {"digest": "d"}, FILE),
        ({"digest": "d"}, {"digest": "d", "run": 2}, ""),
        ({"shown": "a"}, {"shown": "a"}, SAME_WINDOW),
        # One host does one run at a time; Slurm may run several jobs on a node.
        (on("node1", 0), on("node1", 299), f"{HOST}node1"),
        (on("node1", 0), on("node2 node1", 0), f"{HOST}node1"),
        (on("node1", 0), on("node2", 0), ""),
        (on("node1", 0), on("node1", 300), ""),
        (recorded("00", "05"), recorded("00", "05"), RECORD),
        (recorded("00", "05"), recorded("04", "09"), f"{HOST}h"),
        (recorded("00", "05"), recorded("05", "09"), ""),
        (recorded("00", "05", slurm_job="7"), recorded("04", "09", slurm_job="8"), ""),
        (
            recorded("00", "05", slurm_job="7"),
            recorded("04", "09", slurm_job="7"),
            f"{HOST}h, job 7",
        ),
        # The logs of a launch's ranks are one run.
        ({"log": "workerlog.0"}, {"log": "workerlog.1"}, RANK),
        ({"log": "workerlog.0"} | on("", 0), {"log": "workerlog.1"} | on("", 9), RANK),
        ({"log": "workerlog.0"} | on("", 0), {"log": "workerlog.1"} | on("", 9000), ""),
        ({"log": "rank_0.log"} | on("", 0), {"log": "rank_1.log"} | on("", 9), RANK),
        ({"log": "rank_8.log"}, {"log": "rank_16.log"}, ""),  # such as of LoRA
        ({"log": "run_0.log"} | on("", 0), {"log": "run_1.log"} | on("", 9), ""),
    ],
)
def test_a_run_counts_once(one, other, why):
    first = result(**{"log": "a", "shown": "a"} | one)
    second = result(**{"log": "b", "shown": "b"} | other)
    duplicates = DuplicateFinder()
    assert duplicates.reason(first.measured.log, "cell", first) == ""
    found = duplicates.reason(second.measured.log, "cell", second)
    assert found == (f"counted already, as {first.measured.log}: {why}" if why else "")


def shown(text: str, name: str | None = None) -> Fingerprint:
    """What a log shows of its window."""
    log_format, facts = (formats()[name], STYLES[name].facts) if name else (None, ())
    told = [("the command line", facts)]
    stream = BytesIO(text.encode())
    [(measured, _, fingerprint)] = measure_log("log", stream, Method(), log_format, told)
    assert measured.reason == ""
    return fingerprint


LATER = 86_400_000  # milliseconds: a day


@pytest.mark.parametrize(
    ("name", "changed", "into"),
    [
        (None, r"\Z", "\n"),
        (None, r"\A", "hello\n"),
        (None, "(?m)^", "[1,0]<stdout>:"),
        (None, "loss: 1.050499", "loss: 1.05"),
        ("torchtitan", r"2020-09-15", "2020-09-16"),
        ("oneflow-resnet50", r"loss: \S+", "loss: 1.0,"),
        ("megatron", r"lm loss: \S+", "lm loss: 1.0"),
        ("pytorch-resnet50", r"Loss \S+", "Loss 1.0"),
        ("ngc-mxnet-resnet50", r"2020-09-15", "2020-09-16"),
        ("mlperf", r"(?<=_ms\": )\d+", lambda one: str(int(one[0]) + LATER)),
    ],
)
def test_a_copy_is_known_by_its_times_whatever_else_is_changed(name, changed, into):
    text = "".join(f"{line}\n" for line in uneven(name)) if name else RESNET50
    copy = re.sub(changed, into, text)
    assert copy != text
    assert shown(copy, name).digest == shown(text, name).digest


def oneflow(repeat: int, stamp: str) -> Iterator[str]:
    """A repeat some of whose lines have the milliseconds of another's, or whole seconds."""
    yield from RESNET50.partition("train:")[0]
    for n in range(20, 121, 5):
        at = stamp.format(1.6e9 + 2 * n + max(0, n - 60) * repeat / 1e3)
        yield f"train: epoch 0, iter {n}, loss: {repeat:.4f}, top_1: 0.001, top_k: 0.005, "
        yield f"samples/s: 1024.0 {at}\n"


def coarse(repeat: int, began: int) -> Iterator[str]:
    """A repeat by a clock of whole seconds, which another may well have taken, too."""
    yield "Batch size:  1024 global\n             256 per device\n"
    for n in range(10, 201, 10):
        at = began + 99_999 * repeat + 2 * n
        yield f"{n}\timages/sec: 512.0 +/- 0.4 (jitter = 0.7)\t7.{n}{repeat} {at}\n"


@pytest.mark.parametrize(
    ("lines", "how"), [(oneflow, "{:.3f}"), (oneflow, "{:.0f}.000"), (coarse, 1_600_000_000)]
)
def test_repeats_that_ran_at_the_same_time_or_as_steadily_are_no_copies(lines, how):
    assert len({shown("".join(lines(repeat, how))).digest for repeat in range(3)}) == 3


def counted(rows: list[dict]) -> tuple[int, list[str]]:
    """How many rows count, and the reasons of the others."""
    assert {row["status"] for row in rows} <= {"ok", "refused"}
    assert all(row["throughput"] is None for row in rows if row["status"] == "refused")
    reasons = [row["reason"] for row in rows if row["status"] == "refused"]
    return len(rows) - len(reasons), reasons


def test_links_archives_and_other_sources_hold_copies(tmp_path):
    log = log_in(tmp_path / "a")
    log.with_name("r50_b128_fp32_2.log").hardlink_to(log)
    log.with_name("r50_b128_fp32_3.log").symlink_to(log.name)
    with zipfile.ZipFile(tmp_path / "a" / "z.zip", "w") as members:
        members.write(log, NAME)
    log_in(tmp_path / "b")
    window = {"warmup": 20, "measured": 100}
    rows = rows_of(tmp_path / "a", {"path": str(tmp_path / "b"), "window": window})
    assert counted(rows) == (1, [f"counted already, as a/{NAME}: {FILE}"] * 4)
    assert [row["repeat"] for row in rows] == [1, 2, 3, 4, 1]


@pytest.mark.parametrize(("host", "count"), [("node1", 1), ("node2", 2)])
def test_one_host_does_one_run_at_a_time_by_what_its_logs_say(tmp_path, host, count):
    for name, rate, node in (("a", 100.0, "node1"), ("b", 99.0, host)):
        text = "\n".join(planned_log(rate=rate)).replace("on node1", f"on {node}")
        log_in(tmp_path, f"{text}\n", f"1n2g/{name}.log")
    found, reasons = counted(rows_of(tmp_path, **LIKE_OURS))
    assert found == count
    assert all(f"{HOST}node1" in one for one in reasons)


def test_a_log_refused_for_itself_is_no_first(tmp_path):
    log_in(tmp_path, name="2n8g/r50_b96_fp32_1.log")  # its path contradicts it
    log_in(tmp_path, name="2n8g/r50_b128_fp32_2.log")
    count, [reason] = counted(rows_of(tmp_path))
    assert count == 1
    assert "counted already" not in reason


def test_our_own_run_counts_once_whatever_copy_lies_beside_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    second = RUN.model_copy(update={"repeat": 2, "seed": 2})
    shutil.copytree(kept_run(RUN.folder, step_log()), tmp_path / "theirs" / "1")
    kept_run(second.folder, [*step_log(), "more"], run=second)
    ours, theirs = {"systems": ["pytorch"]}, {"name": "small", "from": str(tmp_path / "theirs")}
    for asked, runs, why in (
        (ours, [RUN], []),
        (theirs, [RUN], [FILE]),  # its copy
        (ours, [RUN, second], [SAME_WINDOW]),  # in another repeat's place
    ):
        rows = measure_suite(Suite.model_validate(SUITE | LIKE_OURS | asked), runs)
        assert counted(rows) == (1, [f"counted already, as {RUN.log}: {one}" for one in why])
