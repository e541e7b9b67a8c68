"""Searches for the largest batch: which runs share one, what is kept, and when it is redone."""

import io
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from math import ceil, log, log2
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reperf.config import Report, load_report
from reperf.drawing.labels import title_of
from reperf.errors import ReperfError
from reperf.layout import tables_of
from reperf.measuring.recheck import measured_tables
from reperf.number_format import batch_size
from reperf.plans.planning import Plans
from reperf.plans.run_plan import ITERATIONS, RunPlan
from reperf.records.run_record import LargestBatch, RunRecord
from reperf.tables import read_summary
from reperf.training.largest import Tried, find, largest

from tests.helpers.runs import kept_run
from tests.helpers.scripts import measure_and_summarise
from tests.helpers.step_logs import event, step_log

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
    assert run.print_every == ITERATIONS  # it looks at the loss no more often than runs do


@pytest.mark.parametrize(
    ("shares", "changes"),
    [
        (True, {"name": "other"}),
        (True, {"repeats": 5, "iterations": 200, "time_limit": 60}),
        (True, {"topologies": ["1n2g"]}),
        (True, {"systems": [{"system": "pytorch", "batch_size": "largest"}], "batch_size": 4}),
        (True, {"more": {"title": "Another", "seed": 5}}),
        (False, {"precision": "amp"}),
        (False, {"shape": {"image_size": 32}}),
        (False, {"batch_multiple": 4}),
        (False, {"topologies": ["1n1g"]}),
        (False, {"input": "records"}),
        (False, {"systems": ["ngc-pytorch"]}),
        (False, {"systems": [{"system": "pytorch", "variants": "compile"}]}),
        (False, {"more": {"memory_limit": 2 * 10**9}}),
        (False, {"more": {"threads_per_device": 2}}),
        (False, {"more": {"cluster": CLUSTER}}),
        (False, {"more": {"cluster": CLUSTER | {"variables": {"NCCL_DEBUG": "INFO"}}}}),
    ],
)
def test_what_decides_a_search_and_nothing_else_gives_it_a_place_of_its_own(shares, changes):
    assert (search(**changes)[0] == search()[0]) == shares


def test_suites_that_share_a_search_give_it_the_longest_of_their_time_limits():
    suites = [SUITE | {"name": f"after-{limit}", "time_limit": limit} for limit in (60, 90, 70)]
    [shared] = Plans(report(more={"suites": suites})).searches.values()
    assert shared.aside.time_limit == 90


@pytest.fixture
def ending(monkeypatch) -> Callable[..., LargestBatch]:
    """Search among trials that end as the test says: by batch size and how often it was tried."""

    def find_among(
        status_of: Callable[[int, int], str],
        *,
        limit: int | None = MEMORY,
        retries: int = 0,
        logs: Callable[[int], list[str]] = lambda batch: [],
    ) -> LargestBatch:
        times: Counter[int] = Counter()
        path, asked = search(more={"memory_limit": limit})

        def trial(plan: RunPlan, place: None, folder: Path, **_: object) -> tuple[bool, RunRecord]:
            run = plan.run
            times[run.batch_size] += 1
            status = status_of(run.batch_size, times[run.batch_size])
            reason = "" if status == "ok" else f"it ended as {status}"
            peak = (10**7 * run.batch_size,) if status == "ok" else ()
            folder.rmdir()
            log = logs(run.batch_size) if status == "ok" else ["it", "crashed", "without", "a word"]
            kept_run(folder, log, run=run, status=status, reason=reason, peak_memory_bytes=peak)
            return False, RunRecord.read(folder / "run.json")

        monkeypatch.setattr("reperf.training.largest.try_once", trial)
        for _ in range(retries):
            with suppress(ReperfError):  # Snakemake starts the job again
                find(asked, path.parent, lambda _: None, last=False)
                return LargestBatch.read(path)
        find(asked, path.parent, lambda _: None)
        return LargestBatch.read(path)

    return find_among


def fits(most: int, otherwise: str = "failed", **chance: str) -> Callable[[int, int], str]:
    """Batches up to a size train and others end otherwise, but for those that end by turns."""

    def status_of(batch: int, time: int) -> str:
        turns = chance.get(f"of{batch}", "ok" if batch <= most else otherwise).split()
        return turns[min(time, len(turns)) - 1]

    return status_of


NONE_FITS = "not even 8 samples per device fit: it ended as "
CRASHED = "it ended as failed; its log ends with: crashed | without | a word"
FULL = {"logs": lambda batch: [event("allocation_retries", [0, 3 if batch > 48 else 0])]}


@pytest.mark.parametrize(
    ("status_of", "among", "ended", "reason"),
    [
        # A crash is believed the second time, if a smaller batch trains.
        (fits(48), {}, "ok 48, 56: failed failed", ""),
        (fits(0), {}, "failed 8, 8: failed failed", CRASHED),
        (fits(96, of96="failed ok"), {}, "ok 96, 96: failed ok ok ok", ""),
        # What trains only by chance is not the largest.
        (fits(39, "oom", of48="ok oom", of40="ok ok oom"), {}, "ok 32, 40: ok ok oom", ""),
        (fits(0, "oom", of8="ok oom"), {}, "oom 8, 8: ok oom", f"{NONE_FITS}oom"),
        # Nor is what trains while memory is full again and again.
        (fits(96), {"limit": None} | FULL, "ok 48, 56: oom", ""),
        (fits(0, "oom"), {}, "oom 8, 8: oom", f"{NONE_FITS}oom"),
        (fits(32, "timeout"), {}, "timeout 96, 96: timeout", "it ended as timeout"),
        (fits(0, "unsupported"), {}, "unsupported 8, 8: unsupported", "as unsupported"),
    ],
)
def test_a_search_finds_what_trains_each_time_or_says_why_not(
    ending, status_of, among, ended, reason
):
    found = ending(status_of, **among)
    size = int(ended.partition(": ")[0].split()[-1])
    trials = " ".join(one.status for one in found.trials if one.batch_size == size)
    assert f"{found.status} {found.batch_size}, {size}: {trials}" == ended
    assert reason in found.reason
    assert bool(found.reason) == bool(reason)
    if among.get("logs"):
        assert any("memory was full 3 times" in trial.reason for trial in found.trials)


@pytest.mark.parametrize(("retries", "status"), [(2, "ok"), (1, "timeout")])
def test_a_search_that_fails_is_made_again_as_often_as_is_allowed(ending, retries, status):
    """The third search is the first whose trials do not all time out."""
    tried = Counter()

    def status_of(batch: int, _time: int) -> str:
        tried[batch] += 1
        return "timeout" if tried[8] <= 2 else fits(8, "oom")(batch, 0)

    found = ending(status_of, retries=retries)
    assert found.status == status
    # Nothing of the searches before is taken for this one's.
    folder = Path(found.trials[0].log).parents[1]
    assert len(list(folder.iterdir())) == len(found.trials)


@pytest.mark.parametrize("trained_with", [40, 48])
def test_the_tables_take_the_number_that_was_found_and_refuse_another(trained_with):
    plans = Plans(report(iterations=120))
    [(path, asked)] = plans.searches.items()
    for folder, plan in [*plans.runs.items()][1:]:
        run = plan.run.with_batch(trained_with)
        rate = 100.0 + run.repeat  # equal logs would count once
        log = step_log(batch=run.global_batch, world=run.world_size, rate=rate)
        kept_run(Path(folder), log, run=run, plan=plan.digest)
    plans.write()
    LargestBatch(
        **{"status": "ok", "batch_size": 40, "multiple": 8, "memory_bytes": MEMORY, "trials": ()},
        **{"run": {}, "plan": asked.digest, "trainer": asked.trainer, "image": None},
    ).write(Path(path))
    measure_and_summarise("small", Path("log"))
    measured, cells = map(pd.read_csv, tables_of("small"))
    assert list(measured["batch_size_per_device"]) == [40] * 4
    assert list(cells["batch_size_per_device"]) == [40, 40]
    if trained_with == 40:
        assert list(measured["status"]) == ["refused", "ok", "ok", "ok"]  # the first has not run
        assert list(measured["global_batch"])[1:] == [80, 40, 40]
        assert list(cells["status"]) == ["partial", "ok"]
    else:
        assert list(measured["status"]) == ["refused"] * 4
        why = "batch_size is 48 by the run record, 40 by the configuration"
        assert measured["reason"].str.contains(why).sum() == 3


def test_where_nothing_has_run_the_number_stays_open():
    made = report(systems=["pytorch", "mxnet"], precision="amp")
    suite = made.suites[0]
    cells = [cell.model_copy(update={"unsupported": "not here"}) for cell in made.cells(suite)]
    table = read_summary(io.StringIO([*measured_tables(suite, cells).values()][1]))
    assert table["batch_size_per_device"].isna().all()
    assert title_of(table) == "ResNet-50 v1.5 (64 px), AMP, largest batch, synthetic, on CPUs"
    assert batch_size(table["batch_size_per_device"][0]) == "largest"


MOST = 10_000_000
MULTIPLES = st.sampled_from([1, 8, 24, 512])


def searched(
    need: Callable[[int], int], there: int, *, multiple: int, said: int | None, most: int = MOST
) -> tuple[int | None, list[int]]:
    """What the search finds, and the batch sizes that it tried.

    Args:
        need: bytes that a batch takes.
        there: bytes that there really are.
        said: bytes that there are said to be.
    """
    tried = []

    def attempt(batch: int) -> Tried:
        tried.append(batch)
        trains = need(batch) <= there
        return Tried(trains, need(batch) if trains else None)

    return largest(attempt, multiple=multiple, memory=said, most=most), tried


@given(MULTIPLES, st.integers(0, 10**10), st.integers(1, 10**8), st.integers(1, 10**11))
def test_four_trials_or_some_more_do_where_memory_grows_in_a_straight_line(
    multiple, fixed, slope, there
):
    found, tried = searched(lambda n: fixed + slope * n, there, multiple=multiple, said=there)
    fits = min((there - fixed) // slope, MOST) // multiple * multiple
    assert found == (fits if fits >= multiple else None)
    # While batches differ by less than a fiftieth of memory, the next is four times as large.
    tells = there / 50 / slope / multiple
    assert len(tried) <= 4 + max(0, ceil(log(max(1, tells), 4)))


@st.composite
def memories(draw) -> Callable[[int], int]:
    """Bytes by batch: a line with steps, bends and a fixed part, which never falls."""
    fixed, slope = draw(st.integers(0, 10**10)), draw(st.integers(0, 10**7))
    steps = draw(st.lists(st.tuples(st.integers(1, MOST), st.integers(0, 10**9)), max_size=5))
    bend, power = draw(st.integers(0, 10**4)), draw(st.sampled_from([1, 1.5, 2]))

    def need(batch: int) -> int:
        jumps = sum(size for place, size in steps if batch >= place)
        return int(fixed + slope * batch + bend * batch**power) + jumps

    return need


AMOUNTS = st.integers(1, 10**11)


@given(memories(), MULTIPLES, AMOUNTS, st.none() | AMOUNTS, st.integers(512, MOST))
def test_whatever_memory_does_the_found_batch_trains_and_the_next_one_does_not(
    need, multiple, there, said, most
):
    found, tried = searched(need, there, multiple=multiple, said=said, most=most)
    assert len(set(tried)) == len(tried)
    assert all(batch % multiple == 0 and 0 < batch <= most for batch in tried)
    if found is None:
        assert tried == [multiple]
        assert need(multiple) > there
        return
    assert need(found) <= there
    assert found in tried
    assert found + multiple > most or (need(found + multiple) > there and found + multiple in tried)
    # Up in steps that double, back down by halves, and a few predictions that were wrong.
    assert len(tried) <= 10 + 4 * log2(MOST / multiple)
