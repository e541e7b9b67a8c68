"""The window rule on step logs of our own: the number, and every reason for none."""

import io
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from reperf.config import Run, Suite, Window
from reperf.files import sha256
from reperf.logs.formats import mllog
from reperf.measuring.answer import Question
from reperf.measuring.found_logs import answers
from reperf.measuring.log_sources import measure_suite
from reperf.measuring.measure import Measurement, Method, measure_log
from reperf.systems import TRAINERS
from reperf.tables import MEASUREMENTS
from reperf.training.record import LARGEST_RECORD, Environment, Host, RunRecord

from tests.helpers.step_logs import BOOTED, event, planned_log, step, step_log

WINDOW = Window(warmup=20, measured=100)


def measured(lines: list[str], window: Window = WINDOW, **facts: object) -> list[Measurement]:
    text = "".join(line + "\n" for line in lines).encode()
    known = [("the run record", facts.items())]
    return [
        one for one, *_ in measure_log("log", io.BytesIO(text), Method(window=window), told=known)
    ]


def only(lines: list[str], window: Window = WINDOW, **facts: object) -> Measurement:
    [result] = measured(lines, window, **facts)
    return result


def test_throughput_is_samples_over_time_between_the_windows_ends():
    result = only(step_log(batch=16, rate=100.0))
    assert result.status == "ok"
    assert result.throughput == pytest.approx(100.0, rel=1e-12)
    assert (result.first, result.last, result.samples) == (20, 120, 1600)
    assert (result.global_batch, result.world_size, result.unit) == (16, 2, "images/s")


def test_the_warm_up_does_not_count():
    lines = step_log()
    slow_start = [*lines[:6], step(10, 2.0, 16), *lines[6:]]
    assert only(slow_start).throughput == only(lines).throughput


def waiting(lines: list[str], *waited: object) -> list[str]:
    """The lines of a log whose steps say how long they have waited for data so far."""
    steps = iter(waited)
    return [
        line.replace('"loss": 6.9', f'"loss": 6.9, "waited": {json.dumps(next(steps))}')
        if "tracked_stats" in line
        else line
        for line in lines
    ]


def test_the_share_of_the_window_that_was_waited_for_data_is_measured():
    lines = step_log(batch=16, rate=100.0, every=20)  # 16 s
    result = only(waiting(lines, 2.5, 2.5, 2.5, 3.5, 4.5, 6.5))
    assert result.waited == pytest.approx(0.25)
    assert result.throughput == only(lines).throughput
    assert only(waiting(lines, *[0] * 6)).waited == 0


@pytest.mark.parametrize("last", [None, "4", [], True, -1, 2, 19, 1e300, float("nan")])
def test_a_wait_that_is_not_said_or_cannot_be_is_not_measured(last):
    lines = step_log(batch=16, rate=100.0, every=20)
    result = only(waiting(lines, 2.5, 2.5, 2.5, 2.5, 2.5, last))
    assert (result.status, result.waited) == ("ok", None)


def test_what_else_the_log_counts_in_the_window_is_told_beside_the_samples():
    lines = [
        line.replace('"loss": 6.9', f'"loss": 6.9, "tokens": {1000 + 7 * number}')
        for number, line in enumerate(step_log(batch=16, rate=100.0, every=20))
    ]
    counted = only(lines).counted
    assert counted["samples"] == 1600
    assert counted["tokens"] == 10 * 7  # five steps, with a line of rank 1 behind each
    assert only(step_log(batch=16, rate=100.0)).counted == {"samples": 1600}


@pytest.mark.parametrize(
    ("said", "read"), [(7.25, 7.25), (0, 0), ("7", None), (float("nan"), None)]
)
def test_the_first_batchs_loss_without_dropout_is_told(said, read):
    lines = step_log()
    event = {"key": "loss_without_dropout", "value": said, "event_type": "POINT_IN_TIME"}
    assert only([lines[0], f":::MLLOG {json.dumps(event)}", *lines[1:]]).start_loss == read


def test_another_window_is_another_number_of_iterations():
    result = only(step_log(iterations=60), Window(warmup=20, measured=40))
    assert (result.last, result.samples) == (60, 640)


@pytest.mark.parametrize(
    "label", ["0: ", "[1,0]<stdout>:", "[default0]:", "Wed Dec 16 08:03:32 2020[1,0]<stderr>:"]
)
def test_launcher_labels_are_no_part_of_a_record(label):
    labelled = [label + line for line in step_log()]
    other = [label.replace("0: ", "1: ").replace(",0]", ",1]").replace("t0]", "t1]")]
    assert only(labelled).throughput == only(step_log()).throughput
    noise = [line for pair in zip(labelled, other * len(labelled), strict=False) for line in pair]
    assert only(noise).status == "ok"


@pytest.mark.parametrize("before", ["a warning without a line's end", "INFO: ", "0: [I] "])
@pytest.mark.parametrize("behind", ["", " ", " and more"])
def test_an_event_in_the_middle_of_a_line_is_read(before, behind, tmp_path):
    """Another process, or a logger, may write on the same line."""
    lines = [f"{before}{line}{behind}" for line in step_log()]
    whole = only(step_log())
    assert only(lines) == whole
    assert (whole.status, whole.global_batch, whole.last) == ("ok", 16, 120)
    log = tmp_path / "train.log"
    log.write_text("".join(f"{line}\n" for line in lines))
    assert mllog.read_facts(log) == {"parameters": 25557032, "run_stop": None}
    assert mllog.read_ends(log, [20, 120]) == {20: 1006.2, 120: 1022.2}


def test_progress_bars_and_carriage_returns_are_survived():
    lines = [f" 10%|#   | 1/9\r 20%|##  | 2/9\r{line}\r" for line in step_log()]
    assert only(lines).throughput == only(step_log()).throughput


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda lines: lines[:-6] + lines[-2:], "too short: it ends at iteration 80"),
        (lambda lines: lines[:-2], "the end of the run is not in the log"),
        (
            lambda lines: [x for x in lines if '"iteration": 20,' not in x],
            "the time from iteration 20 to 40 is not in the log: printed are 40, 60, 80, 100",
        ),
        (lambda lines: [x for x in lines if "global_batch" not in x], "global batch is not known"),
        (
            lambda lines: [*lines[:8], step(30, 900.0, 16, 100.0), *lines[8:]],
            "time steps back by",
        ),
        (
            lambda lines: [*lines[:8], step(20, 1006.3, 16), *lines[8:]],
            "several ranks are mixed without labels",
        ),
        (
            lambda lines: [x.replace('"samples": 1920', '"samples": 1921') for x in lines],
            "the log counts 1601 samples in the window",
        ),
        (lambda lines: ["nothing of the kind"], "no known format"),
    ],
)
def test_refusals_say_what_is_wrong(change, reason):
    result = only(change(step_log()))
    assert result.status == "refused"
    assert result.throughput is None
    assert reason in result.reason


def test_a_printed_speed_that_contradicts_the_batch_is_refused_with_both():
    lines = [line.replace('"throughput": 100.0', '"throughput": 200.0') for line in step_log()]
    assert only(lines).reason == (
        "the printed speeds mean 32 images a step, the global batch is 16 under a world size of 2"
    )


def test_facts_that_disagree_are_refused_with_both_sources():
    reason = only(step_log(), world_size=4).reason
    assert reason == "world size is 2 by the log, 4 by the run record"
    reason = only(step_log(), batch_size=16, nodes=1, devices_per_node=2).reason
    assert reason == "global batch is 16 by the log, 32 by the log and the run record"


def test_a_line_written_twice_changes_nothing():
    lines = step_log()
    for at in range(len(lines)):
        assert only([*lines, lines[at]]).throughput == only(lines).throughput
        assert only([*lines[:at], lines[at], *lines[at:]]).throughput == only(lines).throughput


def test_two_runs_in_one_log_are_two_results():
    later = [line.replace('"seconds": 1', '"seconds": 2') for line in step_log(rate=100.0)]
    first, second = measured(step_log() + later)
    assert (first.status, second.status) == ("ok", "ok")
    first, second = measured(step_log()[:12] + later)
    assert (first.status, second.status) == ("refused", "ok")
    assert "too short" in first.reason


@pytest.mark.parametrize("every", [10, 20, 40])
@pytest.mark.parametrize("seconds", [0, 5000])
def test_two_runs_of_ours_in_one_log_may_be_of_two_machines(every, seconds):
    # The second one's clock began at another time, and it prints more often, or less.
    later = [step(n, seconds + n * 32 / 50.0, 32) for n in range(every, 161, every)]
    head = [event("global_batch_size", 32) if "global_b" in x else x for x in step_log()[:6]]
    last = step_log()[-2:]
    window = Window(warmup=40, measured=80)
    first, second = measured([*step_log(), *head, *later, *last], window)
    assert [one.throughput for one in (first, second)] == pytest.approx([100.0, 50.0])
    assert [one.run for one in (first, second)] == [1, 2]
    first, second = measured([*step_log()[:-2], *head, *later, *last], window)
    assert (first.status, second.status) == ("refused", "ok")
    assert "the end of the run is not in the log" in first.reason


def test_a_cut_log_never_gives_another_number():
    text = "".join(line + "\n" for line in step_log()).encode()
    for cut in range(0, text.index(b"run_stop"), 7):
        for result, *_ in measure_log("log", io.BytesIO(text[:cut]), Method()):
            assert result.status == "refused"


@pytest.mark.parametrize("value", ["NaN", "Infinity", "1e400", '"100"', "null", "[]"])
def test_what_is_no_number_is_no_record(value):
    lines = [line.replace('"seconds": 1022.2', f'"seconds": {value}') for line in step_log()]
    assert lines != step_log()
    assert "iteration 120" not in [only(lines).status]
    assert only(lines).status == "refused"


def test_a_long_log_is_measured_without_reading_every_line():
    lines = step_log(iterations=60000)
    result = only(lines)
    assert result.throughput == pytest.approx(100.0)
    restarted = measured(lines + [x.replace('"seconds": 1', '"seconds": 99') for x in step_log()])
    assert len(restarted) == 2


def test_the_trainers_own_step_log_is_measured(tmp_path):
    program = """
import time
from trainers.contract.flags import parse_flags
from trainers.contract.precision import Precision
from trainers.contract.steplog import StepLog
from trainers.recipes import resnet50
flags = parse_flags(
    resnet50,
    "--workload resnet50 --precision fp32 --batch-size 4 --iterations 12 --print-every 2"
    " --shape image_size=32 --input synthetic --device cpu --threads 1 --seed 1".split(),
)
log = StepLog(resnet50, flags, 0, 2)
log.configured(25557032, "none", {}, ["cpu"], Precision("float32"))
for iteration in range(1, 13):
    time.sleep(0.002)
    if log.prints(iteration):
        log.step(iteration, 1.0, None, tokens=iteration * 1000)
log.finished([["all", "a"], ["all", "a"]], [1, 1])
"""
    answer = subprocess.run(
        [sys.executable, "-c", program], cwd=TRAINERS.parent, check=True, capture_output=True
    )
    window = Window(warmup=2, measured=10)
    [(result, *_)] = measure_log("log", io.BytesIO(answer.stdout), Method(window=window))
    assert result.reason == ""
    assert result.samples == 80
    assert 0 < result.throughput < 4000
    method = Method(window=window, unit="tokens")
    [(tokens, *_)] = measure_log("log", io.BytesIO(answer.stdout), method)
    assert (tokens.samples, tokens.unit, tokens.seconds) == (10_000, "tokens/s", result.seconds)
    log = tmp_path / "train.log"
    log.write_bytes(answer.stdout)
    assert mllog.read_facts(log)["parameters"] == 25557032
    assert mllog.read_excuse(log) is None


def test_a_trainers_refusal_is_read(tmp_path):
    log = tmp_path / "train.log"
    log.write_text("0: rank 1: hello\n0: :::REFUSED rank 1: the loss at iteration 2 is nan\nmore\n")
    assert mllog.read_excuse(log) == ("failed", "rank 1: the loss at iteration 2 is nan")
    log.write_text(":::OOM rank 7 (stage 1): no memory left\n")
    assert mllog.read_excuse(log) == ("oom", "rank 7 (stage 1): no memory left")


@pytest.mark.parametrize(
    "line",
    [
        "[1,3]<stderr>::::OOM rank 3: no memory left",
        " 45%|####5     | 45/100\r:::OOM rank 3: no memory left",
    ],
)
def test_a_trainers_last_word_is_a_line_of_its_own(tmp_path, line):
    log = tmp_path / "train.log"
    log.write_text(f"rank 1: hello\n{line}\nmore\n")
    assert mllog.read_excuse(log) == ("oom", "rank 3: no memory left")


@pytest.mark.parametrize(
    "line",
    [
        "I looked for :::OOM rank 3: in the log",
        ":::OOM in a line that no trainer wrote",
        ":::OOM rank three: nor this one",
        "3: " * 100 + ":::OOM rank 3: behind more labels than launchers write",
    ],
)
def test_what_a_trainer_did_not_say_is_no_excuse(tmp_path, line):
    log = tmp_path / "train.log"
    log.write_text(f"rank 1: hello\n{line}\nmore\n")
    assert mllog.read_excuse(log) is None


RUN = Run(
    suite="small",
    system="pytorch",
    variant=None,
    workload="resnet50",
    precision="fp32",
    batch_size=8,
    topology="1n2g",
    repeat=1,
    iterations=120,
    print_every=20,
    shape={"image_size": 64},
    input="synthetic",
    data=None,
    device="cpu",
    threads=1,
    seed=1,
)


def kept_run(folder: Path, lines: list[str], **record: object) -> Path:
    folder.mkdir(parents=True)
    log = folder / "train.log"
    log.write_text("".join(line + "\n" for line in lines))
    RunRecord(
        **{
            "status": "ok",
            "run": RUN,
            "attempt": 1,
            "command": (),
            "variables": {},
            "environment": Environment(lock="", lock_sha256="", python="3.11", packages={}),
            "git_commit": None,
            "git_dirty": None,
            "host": Host(hostname="h", cpu="c", cores=2, memory_bytes=1, os="o", kernel="k"),
            "started": "",
            "ended": "",
            "seconds": 1.0,
            "exit_code": 0,
            "log_sha256": sha256(log),
            **record,
        }
    ).write(folder / "run.json")
    return folder


SUITE = Suite(
    name="small",
    workload="resnet50",
    precision="fp32",
    batch_size=8,
    shape={"image_size": 64},
    systems=["pytorch"],
)


@pytest.fixture
def rows(tmp_path, monkeypatch) -> Callable[..., list[dict]]:
    """Measure runs in the working folder, which is the test's."""
    monkeypatch.chdir(tmp_path)
    return lambda *runs: measure_suite(SUITE, runs or [RUN])


def test_a_kept_run_becomes_a_row(rows):
    kept_run(RUN.folder, step_log())
    [row] = rows()
    assert row["status"] == "ok"
    assert row["throughput"] == pytest.approx(100.0)
    assert row["log_sha256"] == sha256(RUN.folder / "train.log")
    assert list(row) == list(MEASUREMENTS)


def test_a_run_that_did_not_end_well_is_never_a_number(rows):
    kept_run(RUN.folder, step_log(), status="oom", reason="no memory left")
    [row] = rows()
    assert (row["status"], row["reason"], row["throughput"]) == ("oom", "no memory left", None)
    assert (row["global_batch"], row["world_size"]) == (16, 2)


@pytest.mark.parametrize(
    ("log", "reason"),
    [
        ({"every": 10}, "iteration 10 is printed; allowed by the run record: each 20 of 120"),
        ({"iterations": 140}, "iteration 140 is printed; allowed by the run record: each 20"),
        ({"every": 40}, "iteration 20 is not printed; allowed by the run record: each 20"),
    ],
)
def test_a_runs_log_is_held_to_its_record(rows, log, reason):
    kept_run(RUN.folder, step_log(**log))
    [row] = rows()
    assert row["reason"].startswith(reason)


@pytest.mark.parametrize("zone", ["", "+00:00", "Z"])
def test_a_runs_log_lies_between_its_records_start_and_end(rows, zone):
    lines = planned_log()
    began, ended = (datetime.fromtimestamp(BOOTED + 1000 + at, UTC) for at in (-5, 30))
    how = {}
    for name, time in (("started", began), ("ended", ended)):
        how[name] = f"{time:%Y-%m-%dT%H:%M:%S}{zone}"
    kept_run(RUN.folder, lines, **how)
    [row] = rows()
    assert row["reason"] == ""
    shutil.rmtree(RUN.folder)
    kept_run(RUN.folder, lines, **how | {"ended": how["started"]})
    [row] = rows()
    assert re.match(r"the window takes \S+ s, the run took 0 s by the run record", row["reason"])


def test_a_log_that_is_not_its_records_is_refused(rows):
    second = RUN.model_copy(update={"repeat": 2})
    kept_run(RUN.folder, step_log(), log_sha256="0" * 64)
    other_model = [event("parameters", 25557033) if "parameters" in x else x for x in step_log()]
    kept_run(second.folder, other_model, run=second)
    changed, odd = rows(RUN, second)
    assert "changed since its run record" in changed["reason"]
    assert odd["reason"] == ("parameter count is 25557033 by the log, 25557032 by the run record")


def test_a_run_that_is_not_the_one_asked_for_is_refused_with_both_values(rows):
    kept_run(
        RUN.folder, step_log(), run=RUN.model_copy(update={"shape": {"image_size": 32}, "seed": 4})
    )
    [row] = rows()
    assert (row["status"], row["throughput"], row["batch_size_per_device"]) == ("refused", None, 8)
    assert row["reason"] == (
        "the run is not the one that is asked for: "
        "image_size is 32 by the run record, 64 by the configuration; "
        "seed is 4 by the run record, 1 by the configuration"
    )


def edited(content: dict) -> str:
    return json.dumps(content | {"git_commit": "0" * 40})


def deep(_content: dict) -> str:
    return '{"record_version": 2, "host": ' + "[" * 100_000 + "]" * 100_000 + "}"


@pytest.mark.parametrize(
    ("write", "fault"),
    [
        (edited, "has changed since it was written"),
        (deep, "not a run record: "),
        (lambda content: json.dumps(content | {"status": "x" * 200_000}), "not a run record: "),
        (lambda content: json.dumps(content | {"x" * 200_000: 1}), "not a run record: "),
        (lambda content: json.dumps([content]), "not a run record: "),
        (lambda content: json.dumps(content)[:-1], "not a run record: "),
        (lambda content: json.dumps(content) + " " * LARGEST_RECORD, "larger than 16 MiB"),
        (
            lambda content: json.dumps(
                content | {"record_version": 1, "run": content["run"] | {"batch_size": 10**30}}
            ),
            "not a run record: run.batch_size: got 1",
        ),
    ],
)
def test_a_record_that_is_none_or_was_edited_refuses_its_run_in_one_short_line(rows, write, fault):
    record = kept_run(RUN.folder, step_log()) / "run.json"
    record.write_text(write(json.loads(record.read_text())))
    [row] = rows()
    assert (row["status"], row["throughput"]) == ("refused", None)
    assert row["reason"].startswith(f"{record}: ")
    assert fault in row["reason"]
    assert len(row["reason"]) < 500


def test_a_planned_run_is_not_believed_without_a_seal_and_an_archived_one_of_old_is(rows):
    folder = kept_run(RUN.folder, step_log(rate=50.0))
    (folder / "train.log").write_text("".join(f"{line}\n" for line in step_log(rate=500.0)))
    content = json.loads((folder / "run.json").read_text())
    del content["seal"]
    content |= {"record_version": 1, "log_sha256": sha256(folder / "train.log")}
    (folder / "run.json").write_text(json.dumps(content))
    [row] = rows()
    assert (row["status"], row["throughput"]) == ("refused", None)
    assert row["reason"] == (
        "the run is not the one that is asked for: record_version is 1, which has no seal against "
        "edits; allowed: 2 or later"
    )
    [answer] = answers([folder], Question(Method()))
    assert (answer.measured.status, answer.run) == ("ok", RUN)


def test_a_run_without_its_record_or_log_is_refused(rows):
    kept_run(RUN.folder, step_log())
    (RUN.folder / "run.json").unlink()
    [row] = rows()
    assert row["reason"] == f"{RUN.folder}/run.json: not there; a run leaves one beside its log"
    (RUN.folder / "train.log").unlink()
    [row] = rows()
    assert (row["status"], row["log_sha256"]) == ("refused", "")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        # Ends of a run, where none is.
        (lambda lines: [*lines[:-2], event("note", '"run_stop" "success"')], "is not in the log"),
        (
            lambda lines: [*lines[:-2], event("run_stop", None, metadata={"status": "aborted"})],
            "stopped as aborted",
        ),
        (lambda lines: [*lines[:10], lines[-2], *lines[10:-2]], "ended at iteration 40, before"),
        (lambda lines: [*lines[:10], lines[-2], *lines[10:]], "ended at iteration 40, before"),
        # Speeds of nothing on Earth.
        (
            lambda lines: [step(20, 0, 16), step(120, 5e-324, 16), *lines[-2:]],
            "1600 samples in 4.94066e-324 s are no speed that any training has",
        ),
        (
            lambda lines: [step(20, 0, 16), step(120, 9e17, 16), *lines[-2:]],
            "1600 samples in 9e+17 s are no speed that any training has",
        ),
    ],
)
def test_ends_and_speeds_that_cannot_be_are_refused(change, reason):
    result = only(change(step_log()), global_batch=16)
    assert (result.status, result.throughput) == ("refused", None)
    assert reason in result.reason


def test_a_number_that_cannot_be_is_no_batch():
    lines = [event("global_batch_size", 10**30) if "global_b" in x else x for x in step_log()]
    assert only(lines, global_batch=10**30).reason == ("the global batch by the log is above 1e+15")


def test_a_line_of_nothing_but_beginnings_takes_no_longer_than_another():
    # As many as a line may have; were each looked at to the line's end, it would take hours.
    hostile = '"tracked_stats" ' + ":::MLLOG {" * 400_000
    assert only([hostile, *step_log()]).status == "ok"


def test_what_follows_the_end_of_a_run_does_not_matter():
    lines = step_log()
    assert only([*lines, step(140, 1200.0, 16)]).status == "ok"
