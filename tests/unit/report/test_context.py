"""What the report gathers from records and tables."""

import pytest
from reperf.config import LogSource, Window
from reperf.report.context import Timing

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture(scope="module")
def context(big_benchmark):
    return big_benchmark.context


def test_cells_that_could_run_are_told_from_those_that_cannot(context):
    assert context.statuses == {"ok": 16, "partial": 1, "failed": 2, "oom": 1}
    assert context.left_out == {"not built yet": ["NGC MXNet", "NGC TensorFlow 1.x"]}


def test_every_run_is_found_under_its_cell_with_its_own_record_if_it_has_one(
    big_benchmark, context
):
    runs = [run for suite in context.suites for run in suite.runs]
    assert len(runs) == len(big_benchmark.measurements) == 140
    for run in runs:
        assert run.record_path == f"{run.record.run.folder}/run.json"
        assert run.row.log == f"{run.record.run.folder}/train.log"
    without = big_benchmark.but(records=[]).context
    assert [run.record for suite in without.suites for run in suite.runs] == [None] * 140
    assert without.days == ()
    assert without.machines == without.setups == without.commits == []


def test_machines_times_commits_and_optimizers_come_from_the_records(big_benchmark, context):
    """Machines that differ in name alone are one machine."""
    (machine,) = context.machines
    assert machine.names == ("node1", "node2", "node4")
    assert len(machine.host.gpus) == 8
    assert context.days == ("2026-11-21", "2026-11-27")
    assert context.commits == [COMMIT, f"{COMMIT}+"]
    taken = {"settings": {"optimizer": "apex.optimizers.FusedSGD"}}
    setups = big_benchmark.with_records(lambda _: taken).context.setups
    assert {setup.framework.rpartition(", ")[2] for setup in setups} == {"apex.optimizers"}


def test_a_cell_stands_beside_the_published_one_of_the_same_batch_size(context):
    fp32, amp = context.suites
    published = {
        (cell.row.system, cell.row.topology): [row.throughput for row in cell.published]
        for cell in fp32.measured
    }
    assert published["oneflow", "1n1g"] == [397.64]
    assert published["pytorch", "4n8g"] == [10021.29]
    assert ("paddlepaddle", "4n8g") not in published  # it was not measured
    assert not any(cell.published for cell in amp.measured)  # DLPerf has no PyTorch in AMP


def timed(benchmark, **changes):
    """The timings of a report whose second suite is another, and its Markdown in one line."""
    ours, theirs = benchmark.report.suites
    ours = ours.model_copy(update={"sources": changes.pop("beside", ())})
    report = benchmark.report.model_copy(
        update={"suites": (ours, theirs.model_copy(update=changes))}
    )
    other = benchmark.but(report=report)
    return other.context.timings, " ".join(other.pages[1].split())


def test_suites_of_different_windows_are_told_apart(big_benchmark, context):
    ours, theirs = (suite.name for suite in big_benchmark.report.suites)
    assert context.timings == [Timing(120, Window(), (ours, theirs))]
    short = Window(warmup=20, measured=40)
    timings, text = timed(big_benchmark, iterations=60, window=short)
    assert timings == [Timing(120, Window(), (ours,)), Timing(60, short, (theirs,))]
    for name, iterations, measured in ((ours, 120, 100), (theirs, 60, 40)):
        begun = f"**{name}**: Every run trained {iterations} iterations. The clock started at the"
        assert begun in text
        assert f"so 20 warmed up and {measured} were measured." in text


def test_logs_of_others_have_windows_and_no_number_of_iterations(big_benchmark):
    """Nobody here trained them; those that lie beside runs may have a window of their own."""
    ours, theirs = (suite.name for suite in big_benchmark.report.suites)
    wide = Window(warmup=20, measured=1000)
    logs = (LogSource(path="a.zip"), LogSource(path="b.zip", window=wide))
    beside = (*logs, LogSource(path="c.zip", method="published"))
    timings, text = timed(big_benchmark, beside=beside, entries=(), sources=logs)
    assert timings == [
        Timing(120, Window(), (ours,)),
        Timing(None, wide, (ours, theirs)),
        Timing(None, Window(), (theirs,)),
    ]
    assert f"**{ours}**: Every run trained 120 iterations. The clock started" in text
    assert f"**{theirs}**, logs of others: The clock started" in text


@pytest.mark.parametrize(
    ("cells", "baseline", "heading"),
    [
        ({}, "1n1g", "speedup over 1n1g"),
        ({"baseline": "1n8g"}, "1n8g", "speedup over 1n8g"),
        ({"speedup": float("nan"), "baseline": ""}, None, "speedup"),
    ],
)
def test_the_column_of_speedups_names_their_baseline(big_benchmark, cells, baseline, heading):
    for suite in big_benchmark.with_cells(**cells).context.suites:
        assert (suite.baseline, suite.speedup) == (baseline, heading)
