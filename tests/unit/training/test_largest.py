"""Searches for the largest batch: which runs share one, what is kept, and when it is redone."""

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
from reperf.archive.rebuild import make_results
from reperf.config import Report, load_report
from reperf.drawing.labels import title_of
from reperf.plans.current import why_not_current
from reperf.plans.planning import Plans
from reperf.plans.run_plan import RunPlan
from reperf.printed import batch_size, trials
from reperf.steps import measure, summarise
from reperf.tables import read_measurements, read_summary
from reperf.training.batch_search import ITERATIONS, found_by
from reperf.training.largest import find
from reperf.training.record import BatchTrial, LargestBatch, RunRecord

from tests.helpers.step_logs import event, step_log
from tests.unit.measuring.test_measure import kept_run

MEMORY = 10**9
CLUSTER = {"nodes": 1, "devices_per_node": 2}
SUITE = {
    "name": "small",
    "workload": "resnet50",
    "precision": "fp32",
    "shape": {"image_size": 64},
    "batch_size": "largest",
    "input": "synthetic",
    "systems": ["pytorch"],
}


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def report(*, more: dict | None = None, **changes: object) -> Report:
    shared = {"device": "cpu", "memory_limit": MEMORY, "repeats": 2, "topologies": ["1n2g", "1n1g"]}
    return load_report(shared | {"suites": [SUITE | changes]} | (more or {}))


def search(**changes: object) -> tuple[Path, RunPlan]:
    """The one search of a report: what it writes, and its plan."""
    [(path, plan)] = Plans(report(**changes)).searches.items()
    return Path(path), plan


def test_a_search_tries_a_short_run_on_the_most_devices():
    _, plan = search(topologies=["1n1g", "2n2g", "4n1g", "1n2g"])
    run = plan.run
    assert (run.topology, run.iterations, run.batch_size) == ("4n1g", ITERATIONS, "largest")
    assert (run.batch_multiple, run.memory_limit) == (8, 97 * 10**7)
    assert plan.program[plan.program.index("--batch-size") + 1] == "{batch_size}"


@pytest.mark.parametrize(
    "changes",
    [
        {"name": "other"},
        {"repeats": 5, "iterations": 200, "time_limit": 60},
        {"topologies": ["1n2g"]},
        {"systems": [{"system": "pytorch", "batch_size": "largest"}], "batch_size": 4},
        {"more": {"title": "Another", "seed": 5}},
    ],
)
def test_what_decides_nothing_shares_the_search(changes):
    assert search(**changes)[0] == search()[0]


@pytest.mark.parametrize(
    "changes",
    [
        {"precision": "amp"},
        {"shape": {"image_size": 32}},
        {"batch_multiple": 4},
        {"topologies": ["1n1g"]},
        {"input": "records"},
        {"systems": ["ngc-pytorch"]},
        {"systems": [{"system": "pytorch", "variants": "compile"}]},
        {"more": {"memory_limit": 2 * 10**9}},
        {"more": {"threads_per_device": 2}},
        {"more": {"cluster": CLUSTER}},
        {"more": {"cluster": CLUSTER | {"variables": {"NCCL_DEBUG": "INFO"}}}},
    ],
)
def test_what_decides_it_has_a_search_of_its_own(changes):
    assert search(**changes)[0] != search()[0]


def leave(path: Path, asked: RunPlan, *sizes: int, **said: object) -> None:
    """Leave what a search has found: all batch sizes but the last trained."""
    trials = [
        BatchTrial(
            batch_size=size,
            status="oom" if size == sizes[-1] else "ok",
            peak_memory_bytes=() if size == sizes[-1] else (10**6 * size,),
            log=f"{path.parent}/trials/{number}/train.log",
            log_sha256="a" * 64,
        )
        for number, size in enumerate(sizes, 1)
    ]
    best = {"status": "ok", "batch_size": max(sizes[:-1], default=sizes[-1])}
    found = LargestBatch(
        multiple=asked.run.batch_multiple,
        memory_bytes=10**9,
        trials=tuple(trials),
        run=asked.run.model_dump(mode="json", exclude={"batch_size"}),
        image=None,
        **{"plan": asked.digest, "trainer": asked.trainer} | best | said,
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    found.write(path)


def test_what_was_found_is_reused_until_somebody_edits_it():
    path, plan = search()
    assert found_by(path, plan) == (None, "")
    leave(path, plan, 8, 32, 40, 48)
    found, why = found_by(path, plan)
    assert (found.batch_size, why) == (40, "")
    content = json.loads(path.read_text())
    path.write_text(json.dumps(content | {"batch_size": 48}))
    assert found_by(path, plan) == (None, f"{path}: has changed since it was written")
    path.write_text("{")
    assert found_by(path, plan)[1].startswith(f"{path}: not the largest batch: ")


def test_a_search_that_failed_is_made_again_but_not_one_that_found_none():
    path, plan = search()
    leave(path, plan, 8, status="oom", reason="not even 8 samples per device fit")
    assert found_by(path, plan)[0].status == "oom"
    leave(path, plan, 8, status="timeout", reason="no end after 60 s")
    assert found_by(path, plan) == (None, f"{path}: timeout: no end after 60 s")


def test_what_another_plan_found_is_not_taken():
    path, plan = search()
    leave(path, plan, 8, 32, 40, plan="b" * 64)
    assert found_by(path, plan) == (None, f"{path}: is of another plan")


def test_suites_that_share_a_search_give_it_the_longest_of_their_time_limits():
    suites = [SUITE | {"name": f"after-{limit}", "time_limit": limit} for limit in (60, 90, 70)]
    [shared] = Plans(report(more={"suites": suites})).searches.values()
    assert shared.aside.time_limit == 90


@pytest.fixture
def ending(monkeypatch) -> Callable[..., LargestBatch | None]:
    """Search among trials that end as the test says: by batch size and how often it was tried.

    With more memory than the limit, they end by `with_more`.
    """

    def find_among(
        status_of: Callable[[int, int], str],
        *,
        limit: int | None = MEMORY,
        with_more: str = "ok",
        retries: int = 0,
        logs: Callable[[int], list[str]] = lambda batch: [],
    ) -> LargestBatch:
        times: Counter[int] = Counter()
        path, asked = search(more={"memory_limit": limit})

        def trial(plan: RunPlan, place: None, folder: Path, **_: object) -> tuple[bool, RunRecord]:
            run = plan.run
            if run.memory_limit == asked.run.memory_limit:
                times[run.batch_size] += 1
                status = status_of(run.batch_size, times[run.batch_size])
            else:
                status = with_more
            reason = "" if status == "ok" else f"it ended as {status}"
            peak = (10**7 * run.batch_size,) if status == "ok" else ()
            folder.rmdir()
            log = logs(run.batch_size) if status == "ok" else ["it", "crashed", "without", "a word"]
            kept_run(folder, log, run=run, status=status, reason=reason, peak_memory_bytes=peak)
            return False, RunRecord.read(folder / "run.json")

        monkeypatch.setattr("reperf.training.largest.try_once", trial)
        find(asked, path.parent, lambda _: None, retries=retries)
        return LargestBatch.read(path)

    return find_among


@pytest.mark.parametrize("with_more", ["ok", "oom"])
def test_a_crash_is_a_lack_of_memory_where_more_memory_helps(ending, with_more):
    found = ending(lambda batch, _: "ok" if batch <= 48 else "failed", with_more=with_more)
    assert (found.status, found.batch_size) == ("ok", 48)
    tried = [trial for trial in found.trials if trial.batch_size == 56]
    assert [trial.status for trial in tried] == ["failed", "failed", with_more]
    assert [trial.memory_limit for trial in tried[:2]] == [None, None]
    assert tried[2].memory_limit > MEMORY
    assert " where it could take " in trials(found)


def test_a_crash_of_the_smallest_batch_may_be_a_lack_of_memory_too(ending):
    found = ending(lambda *_: "failed")
    assert (found.status, found.batch_size) == ("oom", 8)
    assert found.reason.startswith("not even 8 samples per device fit: it ended as failed; with ")
    assert found.last == found.trials[1]


@pytest.mark.parametrize("with_more", ["failed", "timeout"])
@pytest.mark.parametrize("fits", [0, 48])
def test_another_crash_ends_the_search_with_the_last_lines_of_its_log(ending, fits, with_more):
    found = ending(lambda batch, _: "ok" if batch <= fits else "failed", with_more=with_more)
    assert found.status == "failed"
    assert "its log ends with: crashed | without | a word; with " in found.reason
    assert found.reason.endswith(f", too, it does not train: it ended as {with_more}")
    assert (found.last.batch_size, found.last.status) == (found.batch_size, "failed")


def test_where_nothing_limits_memory_a_crash_is_believed_the_second_time(ending):
    found = ending(lambda batch, _: "ok" if batch <= 48 else "failed", limit=None)
    assert (found.status, found.batch_size) == ("ok", 48)
    assert [trial.status for trial in found.trials if trial.batch_size == 56] == ["failed"] * 2
    found = ending(lambda *_: "failed", limit=None)
    assert (found.status, found.batch_size, len(found.trials)) == ("failed", 8, 1)


def test_a_crash_is_not_tried_with_memory_that_is_not_there(ending, monkeypatch):
    free = SimpleNamespace(available=19 * MEMORY // 10)  # of two devices
    monkeypatch.setattr("reperf.training.largest.psutil.virtual_memory", lambda: free)
    found = ending(lambda batch, _: "ok" if batch <= 48 else "failed")
    assert found.status == "failed"
    assert found.reason.endswith("; there is no more memory to try it with")


def test_a_trial_that_fails_once_is_no_sign_of_memory(ending):
    found = ending(
        lambda batch, time: "ok" if batch <= 96 and (batch, time) != (96, 1) else "failed"
    )
    assert (found.status, found.batch_size) == ("ok", 96)


def test_what_trains_only_by_chance_is_not_the_largest(ending):
    """48 trains once, 40 twice: then it is 32, and the next one above it has not trained."""
    times = {48: 1, 40: 2}
    found = ending(lambda batch, time: "ok" if batch < 40 or time <= times.get(batch, 0) else "oom")
    assert (found.status, found.batch_size) == ("ok", 32)
    ends = [(trial.batch_size, trial.status) for trial in found.trials]
    assert ends[-1] == (32, "ok")
    assert ends.count((32, "ok")) == 3
    assert (40, "oom") in ends
    found = ending(lambda batch, time: "ok" if batch == 8 and time == 1 else "oom")
    assert (found.status, found.batch_size) == ("oom", 8)
    assert found.reason.startswith("not even 8 samples per device fit: ")


def test_what_trains_while_memory_is_full_again_and_again_is_too_large(ending):
    found = ending(
        lambda batch, _: "ok" if batch <= 96 else "oom",
        limit=None,
        logs=lambda batch: [event("allocation_retries", [0, 3 if batch > 48 else 0])],
    )
    assert (found.status, found.batch_size) == ("ok", 48)
    full = [trial for trial in found.trials if trial.batch_size == 56]
    assert [trial.status for trial in full] == ["oom"]
    assert "memory was full 3 times" in full[0].reason


def test_a_trial_looks_at_the_loss_no_more_often_than_runs_do():
    _, plan = search()
    assert plan.run.print_every == ITERATIONS


@pytest.mark.parametrize(
    ("status_of", "ended", "size"),
    [
        (lambda batch, _: "oom" if batch == 8 else "ok", "oom", 8),
        (lambda batch, _: "timeout" if batch > 32 else "ok", "timeout", 96),
        (lambda batch, _: "unsupported", "unsupported", 8),
    ],
)
def test_a_search_without_a_result_says_what_its_last_trial_said(ending, status_of, ended, size):
    found = ending(status_of)
    assert (found.status, found.batch_size) == (ended, size)
    assert f"it ended as {ended}" in found.reason
    assert found.trials[-1].batch_size == size


@pytest.mark.parametrize(("retries", "status"), [(2, "ok"), (1, "timeout")])
def test_a_search_that_fails_is_made_again_as_often_as_is_allowed(ending, capsys, retries, status):
    """The third search is the first whose trials do not all time out."""
    tried = Counter()

    def status_of(batch: int, _time: int) -> str:
        tried[batch] += 1
        if tried[8] <= 2:
            return "timeout"
        return "ok" if batch <= 8 else "oom"

    found = ending(status_of, retries=retries)
    assert found.status == status
    said = capsys.readouterr().err.splitlines()
    assert len(said) == retries
    assert all(
        "timeout: the trial of 8 samples per device: it ended as timeout" in line for line in said
    )
    # Nothing of the searches before is taken for this one's.
    folder = Path(found.trials[0].log).parents[1]
    assert len(list(folder.iterdir())) == len(found.trials)


@pytest.fixture
def trained() -> Callable[..., Report]:
    """Leave the runs of a report as they were trained with the batch size that was found."""

    def leave_runs(batch_size: int, **changes: object) -> Report:
        made = report(**changes)
        for folder, plan in Plans(made).runs.items():
            run = plan.run.with_batch(batch_size)
            rate = 100.0 + run.repeat  # equal logs would count once
            log = step_log(batch=run.global_batch, world=run.world_size, rate=rate)
            kept_run(Path(folder), log, run=run, plan=plan.digest)
        return made

    return leave_runs


def test_a_record_is_as_planned_while_its_number_is_the_one_that_was_found(trained):
    for plan in Plans(trained(40)).runs.values():
        record = plan.run.record
        assert why_not_current(plan, 40, None) == ""
        assert why_not_current(plan, 48, None) == (
            f"{record}: batch_size is 40 by the run record, 48 found"
        )
        assert why_not_current(plan, None, None) == (
            f"{record}: batch_size is 40 by the run record, not found"
        )
    named = Plans(report(batch_size=40))
    assert not named.searches
    for plan in named.runs.values():
        assert why_not_current(plan, None, None) == f"{plan.run.record}: is of another plan"


def test_the_tables_take_the_number_that_was_found(trained):
    made = trained(40, iterations=120)
    plans = Plans(made)
    plans.write()
    [(path, plan)] = plans.searches.items()
    leave(Path(path), plan, 8, 32, 40, 48)
    made.runs(made.suites[0])[0].record.unlink()
    measure.run("small")
    summarise.run("small")
    measured = read_measurements("results/suites/small/measurements.csv")
    assert list(measured["batch_size_per_device"]) == [40] * 4
    assert list(measured["status"]) == ["refused", "ok", "ok", "ok"]
    assert list(measured["global_batch"])[1:] == [80, 40, 40]
    cells = read_summary("results/suites/small/summary.csv")
    assert list(cells["batch_size_per_device"]) == [40, 40]
    assert list(cells["status"]) == ["partial", "ok"]


def test_a_record_with_another_number_than_the_one_that_was_found_is_refused(trained):
    plans = Plans(trained(48, iterations=120))
    plans.write()
    [(path, plan)] = plans.searches.items()
    leave(Path(path), plan, 8, 32, 40, 48)
    measure.run("small")
    measured = read_measurements("results/suites/small/measurements.csv")
    assert list(measured["status"]) == ["refused"] * 4
    assert "batch_size is 48 by the run record, 40 by the configuration" in measured["reason"][0]


def test_where_nothing_has_run_the_number_stays_open():
    made = report(systems=["pytorch", "mxnet"], precision="amp")
    suite = made.suites[0]
    cells = [cell.model_copy(update={"unsupported": "not here"}) for cell in made.cells(suite)]
    make_results(made, tuple(cells))
    table = read_summary("results/suites/small/summary.csv")
    assert table["batch_size_per_device"].isna().all()
    assert title_of(table) == "ResNet-50 v1.5 (64 px), AMP, largest batch, synthetic, on CPUs"
    assert batch_size(table["batch_size_per_device"][0]) == "largest"
