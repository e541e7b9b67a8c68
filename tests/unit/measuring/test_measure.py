"""The window rule on step logs of our own: the number, and every reason for none."""

import io
import json
import re
import shlex
import time
from collections.abc import Callable
from datetime import UTC, datetime

import pytest
from reperf.config import Window
from reperf.files import sha256
from reperf.logs.formats import mllog
from reperf.measuring.measure import Measurement, Method, measure_log
from reperf.measuring.suite_rows import measure_suite
from reperf.records.run_record import LARGEST_RECORD
from reperf.tables import MEASUREMENTS
from trainers.contract.flags import parse_flags
from trainers.contract.precision import Precision
from trainers.contract.steplog import StepLog
from trainers.recipes import resnet50

from tests.helpers.runs import RUN, SUITE, kept_run
from tests.helpers.step_logs import BOOTED, event, planned_log, step, step_log

Change = Callable[[list[str]], list[str]]
STEADY = step_log(batch=16, rate=100.0)  # a window of 16 s


def measured(lines: list[str], method: Method = Method()) -> list[Measurement]:  # noqa: B008
    text = "".join(line + "\n" for line in lines).encode()
    return [one for one, *_ in measure_log("log", io.BytesIO(text), method)]


def only(lines: list[str], *method: Method) -> Measurement:
    [result] = measured(lines, *method)
    return result


def replaced(old: str, new: str) -> Change:
    return lambda lines: [line.replace(old, new) for line in lines]


def put(at: int, *more: str) -> Change:
    return lambda lines: [*lines[:at], *more, *lines[at:]]


def waiting(*values: object) -> list[str]:
    """A log whose steps say that they waited for data."""
    said = (f'"loss": 6.9, "waited": {json.dumps(value)}' for value in values)
    return [line.replace('"loss": 6.9', next(said)) if "stats" in line else line for line in STEADY]


def test_throughput_is_samples_over_time_between_the_windows_ends():
    result = only(STEADY)
    assert result.status == "ok"
    assert result.throughput == pytest.approx(100.0, rel=1e-12)
    assert (result.first, result.last, result.samples) == (20, 120, 1600)
    assert (result.global_batch, result.world_size, result.unit) == (16, 2, "images/s")
    shorter = only(step_log(iterations=60), Method(window=Window(warmup=20, measured=40)))
    assert (shorter.last, shorter.samples) == (60, 640)


@pytest.mark.parametrize(
    ("last", "share"),
    [(6.5, 0.25), (2.5, 0), (18.5, 1), (19, None), (2, None), (-1, None), (1e300, None)]
    + [(said, None) for said in (None, "4", [], True, float("nan"))],
)
def test_the_share_of_the_window_that_was_waited_for_data_is_measured_if_it_can_be(last, share):
    result = only(waiting(*[2.5] * 5, last))
    assert result.waited == share
    assert set(result.counted) == {"samples"}
    assert (result.status, result.throughput) == ("ok", only(STEADY).throughput)


@pytest.mark.parametrize(
    ("waits", "share"),
    [
        ((1.0, 9.0), 0.5),  # rank 0 stood still for it, in a collective
        ((1.0, 1.5), 0.25),  # less than rank 0 itself
        ((1.0, 99.0), 0.25),  # which cannot be
        ((None, 8.0), 0.5),  # none yet at the window's start
    ],
)
def test_of_several_ranks_the_one_that_waited_longest_in_the_window_counts(waits, share):
    lines = waiting(*[2.5] * 5, 6.5)
    for iteration, waited in zip((20, 120), waits, strict=True):
        at = lines.index(f"rank 1: iteration {iteration}")
        lines[at] += ", loss 6.9" + (f", waited {waited:.6f} s" if waited else "")
    assert only(lines).waited == share


@pytest.mark.parametrize(
    ("said", "read"), [(7.25, 7.25), (0, 0), ("7", None), (float("nan"), None)]
)
def test_the_first_batchs_loss_without_dropout_is_told(said, read):
    assert only(put(1, event("loss_without_dropout", said))(STEADY)).start_loss == read


@pytest.mark.parametrize(
    "before",
    [
        *("0: ", "[1,0]<stdout>:", "[default0]:", "Wed Dec 16 08:03:32 2020[1,0]<stderr>:"),
        *("a warning without a line's end", "INFO: ", "0: [I] ", " 10%|#  | 1/9\r 20%|## |\r"),
    ],
)
@pytest.mark.parametrize("after", ["", " ", " and more", "\r"])
def test_what_launchers_and_others_write_on_the_line_is_no_part_of_an_event(
    before, after, tmp_path
):
    lines = [f"{before}{line}{after}" for line in STEADY]
    assert only(lines) == only(STEADY)
    log = tmp_path / "train.log"
    log.write_text("".join(f"{line}\n" for line in lines))
    assert mllog.read_facts(log) == {"parameters": 25557032, "run_stop": None}
    assert mllog.read_ends(log, [20, 120]) == {20: 1006.2, 120: 1022.2}


NOT_FINITE = [replaced('"seconds": 1022.2', f'"seconds": {value}') for value in ("NaN", '"100"')]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda _: ["nothing of the kind"], "no known format"),
        # What the window needs is not there.
        (lambda lines: lines[:-6] + lines[-2:], "too short: it ends at iteration 80"),
        (replaced('"iteration": 20,', ""), "20 to 40 is not in the log: printed are 40, 60, 80"),
        (replaced("global_batch", "no"), "global batch is not known"),
        *((change, "too short: it ends at") for change in NOT_FINITE),
        # The end of the run is not in the log, or comes too early.
        (lambda lines: lines[:-2], "the end of the run is not in the log"),
        (lambda lines: [*lines[:-2], event("note", '"run_stop" "success"')], "is not in the log"),
        (replaced("success", "aborted"), "stopped as aborted"),
        (lambda lines: [*lines[:10], lines[-2], *lines[10:]], "ended at iteration 40, before"),
        # It contradicts itself.
        (put(8, step(20, 1006.3, 16)), "several ranks are mixed without labels"),
        (replaced('"samples": 1920', '"samples": 1921'), "counts 1601 samples in the window"),
        (replaced('put": 100.0', 'put": 200.0'), "mean 32 images a step, the global batch is 16"),
        (replaced('size", "value": 16', f'size", "value": {10**30}'), "the log is above 1e+15"),
    ],
)
def test_refusals_say_what_is_wrong(change, reason):
    lines = change(STEADY)
    assert lines != STEADY
    result = only(lines)
    assert (result.status, result.throughput) == ("refused", None)
    assert reason in result.reason


@pytest.mark.parametrize(
    ("log", "first", "last", "number"),
    [
        ({}, "40:160", "120:160", 5),
        ({"every": 1, "iterations": 300}, "4:160", "300:160", 100),  # of 299, three a number
    ],
)
def test_step_times_are_found_if_they_are_asked_for(log, first, last, number):
    lines = "\n".join(step_log(**log)).encode()
    whole = Window(warmup=20, measured=log.get("iterations", 120) - 20)
    for method in (Method(window=whole, step_times=True), Method(window=whole)):
        [(_, _, shown)] = measure_log("log", io.BytesIO(lines), method)
        steps = shown.step_times.split()
        wanted = (number, first, last) if method.step_times else (0,)
        assert (len(steps), *steps[:1], *steps[-1:]) == wanted


@pytest.mark.parametrize(("every", "seconds"), [(10, 0), (20, 5000), (40, 5000)])
def test_two_runs_of_ours_in_one_log_may_be_of_two_machines(every, seconds):
    # The second one's clock began at another time, and it prints more often, or less.
    later = [step(n, seconds + n * 32 / 50.0, 32) for n in range(every, 161, every)]
    later = [*replaced('size", "value": 16', 'size", "value": 32')(STEADY[:6]), *later]
    method = Method(window=Window(warmup=40, measured=80))
    first, second = measured([*STEADY, *later, *STEADY[-2:]], method)
    assert [one.throughput for one in (first, second)] == pytest.approx([100.0, 50.0])
    assert [one.run for one in (first, second)] == [1, 2]
    for cut, reason in ((18, "the end of the run is not in the log"), (12, "too short")):
        first, second = measured([*STEADY[:cut], *later, *STEADY[-2:]], method)
        assert (first.status, second.status) == ("refused", "ok")
        assert reason in first.reason


def test_the_trainers_own_step_log_is_measured(tmp_path, capfdbinary):
    flags = parse_flags(
        resnet50,
        shlex.split(
            "--workload resnet50 --precision fp32 --batch-size 4 --iterations 12 --print-every 2"
            " --shape image_size=32 --input synthetic --device cpu --threads 1 --seed 1"
        ),
    )
    written = StepLog(resnet50, flags, 0, 2)
    written.configured(25557032, "none", {}, ["cpu"], Precision("float32"))
    for iteration in range(1, 13):
        time.sleep(0.002)
        if written.prints(iteration):
            written.step(iteration, 1.0, None, tokens=iteration * 1000)
    written.finished([["all", "a"], ["all", "a"]], [1, 1])
    text = capfdbinary.readouterr().out
    window = Window(warmup=2, measured=10)
    result, tokens = (
        next(measure_log("log", io.BytesIO(text), Method(window=window, unit=unit)))[0]
        for unit in (None, "tokens")
    )
    assert (result.reason, result.samples) == ("", 80)
    assert 0 < result.throughput < 4000
    assert (tokens.samples, tokens.unit, tokens.seconds) == (10_000, "tokens/s", result.seconds)
    log = tmp_path / "train.log"
    log.write_bytes(text)
    assert mllog.read_facts(log)["parameters"] == 25557032
    assert mllog.read_excuse(log) is None


@pytest.mark.parametrize(
    ("line", "excuse"),
    [
        ("0: :::REFUSED rank 1: the loss is nan", ("failed", "rank 1: the loss is nan")),
        (":::OOM rank 7 (stage 1): no memory left", ("oom", "rank 7 (stage 1): no memory left")),
        ("[1,3]<stderr>::::OOM rank 3: no memory", ("oom", "rank 3: no memory")),
        (" 45%|####5     | 45/100\r:::OOM rank 3: no memory", ("oom", "rank 3: no memory")),
        ("I looked for :::OOM rank 3: in the log", None),
        (":::OOM in a line that no trainer wrote", None),
        (":::OOM rank three: nor this one", None),
        ("3: " * 100 + ":::OOM rank 3: after more labels than launchers write", None),
    ],
)
def test_a_trainers_last_word_is_a_line_of_its_own(tmp_path, line, excuse):
    log = tmp_path / "train.log"
    log.write_text(f"rank 1: hello\n{line}\nmore\n")
    assert mllog.read_excuse(log) == excuse


def test_a_line_of_nothing_but_beginnings_is_passed_over():
    # As many as a line may have. Were each looked at to the line's end, this would take hours.
    hostile = '"tracked_stats" ' + ":::MLLOG {" * 400_000
    assert only([hostile, *STEADY]).throughput == only(STEADY).throughput


@pytest.fixture
def row(tmp_path, monkeypatch) -> Callable[..., dict]:
    """Keep a run in the working folder, which is the test's, unless there are no lines: its row."""
    monkeypatch.chdir(tmp_path)

    def row(lines: list[str] | None = None, **record: object) -> dict:
        if lines:
            kept_run(RUN.folder, lines, **record)
        [row] = measure_suite(SUITE, [RUN])
        return row

    return row


def test_a_kept_run_becomes_a_row(row):
    found = row(STEADY)
    assert list(found) == list(MEASUREMENTS)
    assert (found["status"], found["throughput"]) == ("ok", pytest.approx(100.0))
    assert found["log_sha256"] == sha256(RUN.folder / "train.log")
    (RUN.folder / "run.json").unlink()
    missing = f"{RUN.folder}/run.json: not there; a run leaves one beside its log"
    assert row()["reason"] == missing
    (RUN.folder / "train.log").unlink()
    assert (row()["status"], row()["log_sha256"]) == ("refused", "")


OTHER = RUN.model_copy(update={"shape": {"image_size": 32}, "seed": 4})
BOTH_VALUES = (
    "the run is not the one that is asked for: image_size is 32 by the run record, 64 by the "
    "configuration; seed is 4 by the run record, 1 by the configuration"
)
OF_OTHER_MODEL = replaced("25557032", "25557033")(STEADY)
FULL = {"status": "oom", "reason": "no memory left"}


@pytest.mark.parametrize(
    ("lines", "record", "status", "reason"),
    [
        (STEADY, FULL, "oom", "no memory left"),
        (step_log(every=10), {}, "refused", "iteration 10 is printed; allowed by the run record: "),
        (STEADY, {"log_sha256": "0" * 64}, "refused", "the log has changed since its run record"),
        (OF_OTHER_MODEL, {}, "refused", "parameter count is 25557033 by the log, 25557032 by the"),
        (STEADY, {"run": OTHER}, "refused", BOTH_VALUES),
    ],
)
def test_a_run_that_ended_badly_or_is_not_what_its_record_says_is_no_number(
    row, lines, record, status, reason
):
    found = row(lines, **record)
    assert (found["status"], found["throughput"]) == (status, None)
    assert (found["batch_size_per_device"], found["global_batch"]) == (8, 16)
    assert found["reason"].startswith(reason)


TOO_LONG = r"the window takes \S+ s, the run took 0 s by the run record"


@pytest.mark.parametrize(
    ("zone", "until", "reason"), [("", 30, ""), ("+00:00", 30, ""), ("Z", -5, TOO_LONG)]
)
def test_a_runs_log_lies_between_its_records_start_and_end(row, zone, until, reason):
    began, ended = (
        f"{datetime.fromtimestamp(BOOTED + 1000 + at, UTC):%Y-%m-%dT%H:%M:%S}{zone}"
        for at in (-5, until)
    )
    assert re.fullmatch(reason, row(planned_log(), started=began, ended=ended)["reason"])


@pytest.mark.parametrize(
    ("write", "fault"),
    [
        (lambda said: json.dumps(said | {"git_commit": "0" * 40}), "has changed since it was"),
        (lambda _: f'{{"host": {"[" * 100_000}{"]" * 100_000}}}', "not a run record: "),
        (lambda said: json.dumps(said | {"x" * 200_000: 1}), "not a run record: "),
        (lambda said: json.dumps(said) + " " * LARGEST_RECORD, "larger than 16 MiB"),
    ],
)
def test_a_record_that_is_none_or_was_edited_refuses_its_run_in_one_short_line(row, write, fault):
    record = kept_run(RUN.folder, STEADY) / "run.json"
    record.write_text(write(json.loads(record.read_text())))
    found = row()
    assert (found["status"], found["throughput"]) == ("refused", None)
    assert found["reason"].startswith(f"{record}: ")
    assert fault in found["reason"]
    assert len(found["reason"]) < 500
