"""What the report gathers from records and tables."""

import pandas as pd
import pytest
from reperf.config import LogSource, Window
from reperf.records.run_record import SetRead
from reperf.report.context import Timing

IMAGENET = {"name": "imagenet", "counted": "images", "samples": 12811}
COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture(scope="module")
def context(big_benchmark):
    return big_benchmark.context


def test_cells_that_could_run_are_told_from_those_that_cannot(context):
    assert context.statuses == {"ok": 16, "partial": 1, "failed": 2, "oom": 1}
    assert context.left_out == {"not built yet": ["NGC MXNet", "NGC TensorFlow 1.x"]}


def test_every_run_is_found_under_its_cell_with_its_own_record(big_benchmark, context):
    runs = [run for suite in context.suites for run in suite.runs]
    assert len(runs) == len(big_benchmark.measurements) == 140
    for run in runs:
        assert run.record_path == f"{run.record.run.folder}/run.json"
        assert run.row.log == f"{run.record.run.folder}/train.log"


def test_a_run_without_a_record_is_still_shown(big_benchmark):
    context = big_benchmark.but(records=[]).context
    assert [run.record for suite in context.suites for run in suite.runs] == [None] * 140
    assert context.days is None
    assert context.machines == context.setups == context.commits == []


def test_machines_times_and_commits_come_from_the_records(context):
    """Machines that differ in name alone are one machine."""
    (machine,) = context.machines
    assert machine.names == ("node1", "node2", "node4")
    assert len(machine.host.gpus) == 8
    assert context.days == ("2026-11-21", "2026-11-27")
    assert context.commits == [COMMIT, f"{COMMIT}+"]


def test_a_system_that_may_take_several_optimizers_says_which_one_it_took(big_benchmark):
    taken = {"settings": {"optimizer": "apex.optimizers.FusedSGD"}}
    records = [record.model_copy(update=taken) for record in big_benchmark.records[:1]]
    (setup,) = big_benchmark.but(records=records).context.setups
    assert setup.framework.endswith(", apex.optimizers")


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


def changed(benchmark, cells=None, **suite):
    """The FP32 suite alone, with some of its keys, or of its table, changed."""
    fp32 = benchmark.report.suite("resnet50-fp32").model_copy(update=suite)
    report = benchmark.report.model_copy(update={"suites": (fp32,)})
    own = benchmark.summary[benchmark.summary["suite"] == "resnet50-fp32"]
    own = own.assign(**(cells or {}))
    return benchmark.but(report=report, records=[], summary=own)


@pytest.mark.parametrize(
    "changes",
    [{"shape": {"image_size": 64}}, {"input": "synthetic"}, {"cells": {"unit": "tokens/s"}}],
    ids=str,
)
def test_nothing_published_stands_beside_what_is_not_the_same(big_benchmark, changes):
    (suite,) = changed(big_benchmark, **changes).context.suites
    assert not any(cell.published for cell in suite.cells)


LOGS = {"entries": (), "sources": (LogSource(path="theirs.zip"),)}
SMALL = {"shape": {"image_size": 64}}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (SMALL, "Real samples from record files, image size 64; 7 repeats per cell"),
        (LOGS, "Logs from theirs.zip."),
        (LOGS | SMALL, "Logs from theirs.zip, image size 64"),
    ],
)
def test_the_shape_is_said_in_the_words_of_the_workload(big_benchmark, changes, said):
    for page in changed(big_benchmark, **changes).pages:
        assert said in page


def test_a_suite_names_the_data_sets_that_its_runs_read(big_benchmark):
    def said(**formats):
        read = [
            record.model_copy(
                update={
                    "run": record.run.model_copy(update={"input": form}),
                    "data_set": SetRead(**IMAGENET, bytes=size),
                }
            )
            for record, (form, size) in zip(big_benchmark.records, formats.items(), strict=False)
        ]
        return big_benchmark.but(records=read).pages[1]

    assert (
        "Real samples from record files of imagenet (12,811 images; 1,481.2 MB as tfrecord), image "
        "size 224; 7 repeats per cell. Throughput"
    ) in said(tfrecord=1_481_234_567)
    both = " of imagenet (12,811 images; 1,400.0 MB as recordio, 1,481.2 MB as tfrecord), "
    assert both in said(tfrecord=1_481_234_567, recordio=1_400_000_000)


@pytest.mark.parametrize(
    ("changes", "differ"),
    [
        ({"system": "tensorflow2"}, True),
        ({"system": "tensorflow2", "input": "synthetic"}, False),
        ({"system": "mxnet"}, False),
    ],
)
def test_crops_are_said_to_differ_where_tensorflow_stands_beside_others(
    big_benchmark, changes, differ
):
    records = [
        record.model_copy(update={"run": record.run.model_copy(update=changes)})
        if record.run.system == "oneflow"
        else record
        for record in big_benchmark.records
    ]
    tables = {
        name: getattr(big_benchmark, name).replace("oneflow", changes["system"])
        for name in ("measurements", "summary")
    }
    logs = big_benchmark.measurements["log"].str.replace("/oneflow/", f"/{changes['system']}/")
    pages = big_benchmark.but(records=records, **tables).with_runs(log=list(logs)).pages
    assert [page.count("Crops differ") for page in pages] == [differ, differ]


def in_one_line(benchmark) -> str:
    return " ".join(benchmark.pages[1].split())


def test_suites_of_different_windows_are_told_apart(big_benchmark, context):
    report = big_benchmark.report
    names = tuple(suite.name for suite in report.suites)
    assert context.timings == [Timing(120, Window(), names)]
    window = Window(warmup=20, measured=40)
    short = report.suites[1].model_copy(update={"iterations": 60, "window": window})
    both = report.model_copy(update={"suites": (report.suites[0], short)})
    other = big_benchmark.but(report=both, records=[])
    assert other.context.timings == [
        Timing(120, Window(), names[:1]),
        Timing(60, window, names[1:]),
    ]
    text = in_one_line(other)
    for name, measured in zip(names, (100, 40), strict=True):
        said = f"**{name}**: The clock started at the end of iteration 20"
        assert f"so 20 warmed up and {measured} were measured." in text
        assert said in text


def test_logs_of_others_have_windows_and_no_number_of_iterations(big_benchmark):
    """Nobody here trained them; those that lie beside runs may have a window of their own."""
    ours, theirs = big_benchmark.report.suites
    wide = Window(warmup=20, measured=1000)
    logs = (LogSource(path="a.zip"), LogSource(path="b.zip", window=wide))
    published = LogSource(path="c.zip", method="published")
    ours = ours.model_copy(update={"sources": (*logs, published)})
    theirs = theirs.model_copy(update={"entries": (), "sources": logs})
    report = big_benchmark.report.model_copy(update={"suites": (ours, theirs)})
    other = big_benchmark.but(report=report)
    assert other.context.timings == [
        Timing(120, Window(), (ours.name,)),
        Timing(None, wide, (ours.name, theirs.name)),
        Timing(None, Window(), (theirs.name,)),
    ]
    text = in_one_line(other)
    assert f"**{ours.name}**: Every run trained 120 iterations. The clock started" in text
    assert f"**{theirs.name}**, logs of others: The clock started" in text


@pytest.mark.parametrize(
    ("cells", "baseline", "heading"),
    [
        ({}, "1n1g", "speedup over 1n1g"),
        ({"baseline": "1n8g"}, "1n8g", "speedup over 1n8g"),
        ({"speedup": float("nan"), "baseline": ""}, None, "speedup"),
    ],
)
def test_the_column_of_speedups_names_their_baseline(big_benchmark, cells, baseline, heading):
    (suite,) = changed(big_benchmark, cells).context.suites
    assert (suite.baseline, suite.speedup) == (baseline, heading)


def test_different_baselines_are_named_beside_each_speedup(big_benchmark):
    fp32 = changed(big_benchmark).summary
    baselines = fp32["baseline"].mask(fp32["system"] == "oneflow", "1n8g")
    mixed = changed(big_benchmark, {"baseline": baselines.where(fp32["speedup"].notna(), "")})
    assert mixed.context.suites[0].speedup == "speedup"
    html, markdown = mixed.pages
    for baseline in ("1n1g", "1n8g"):
        assert f" over {baseline} |" in markdown
        assert f"<small>over {baseline}</small>" in html


def test_the_fastest_of_a_topology_stands_beside_the_others(context):
    panels = {panel.topology: panel for panel in context.suites[0].panels}
    ranked = [
        (rival.cell.series, round(rival.ratio.estimate, 2), rival.verdict)
        for rival in panels["1n1g"].ranked
    ]
    assert ranked == [
        ("OneFlow", 1, "fastest"),
        ("PaddlePaddle", 0.89, "slower"),
        ("PyTorch", 0.88, "slower"),
    ]
    last = panels["4n8g"]
    assert [rival.cell.series for rival in last.ranked] == ["OneFlow", "PyTorch"]
    assert [cell.series for cell in last.missing] == ["PaddlePaddle"]


def test_a_topology_with_one_cell_has_nobody_to_compare(big_benchmark):
    ones = big_benchmark.summary[big_benchmark.summary["system"] == "oneflow"]
    suite = big_benchmark.but(summary=ones).context.suites[0]
    assert {rival.verdict for panel in suite.panels for rival in panel.ranked} == {"alone"}
    assert suite.finding.startswith("OneFlow: 11,")
    assert "fastest" not in suite.finding


def test_a_node_that_is_slow_is_named_with_the_medians_that_it_moved(big_benchmark):
    """Runs of a cell on four nodes in turn, one of which is 5 % slower."""
    runs = big_benchmark.measurements
    hosts = ["abcd"[repeat % 4] for repeat in runs["repeat"]]
    alone = runs["num_nodes"] == 1
    slow = runs["throughput"].where(pd.Series(hosts, runs.index) != "d", runs["throughput"] * 0.95)
    benchmark = big_benchmark.with_runs(hosts=hosts, throughput=slow.where(alone, slow / 2))
    context = benchmark.context
    [sentence] = context.on_slow_nodes
    assert sentence.startswith(
        "d is 4.9 % slower than the other nodes' median (4.8 to 5.0 %, by 20"
    )
    assert "20 runs), and moves the medians of resnet50-fp32: OneFlow on 1n1g (" in sentence
    for page in benchmark.pages:
        assert "by 20 runs), and moves the medians of resnet50-fp32: OneFlow on 1n1g" in page
    marked = {cell.row.num_nodes for cell in context.cells if "on slow d" in cell.marks}
    assert marked == {1}
    assert not any("slow node" in page for page in big_benchmark.pages)
