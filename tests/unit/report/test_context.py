"""What the report gathers from records and tables."""

from reperf.config import LogSource, Window
from reperf.report.context import Context, Timing, gather
from reperf.report.html import render_html
from reperf.report.markdown import render_markdown
from reperf.training.record import SetRead

IMAGENET = {"name": "imagenet", "counted": "images", "samples": 12811}


def gathered(benchmark):
    return gather(benchmark.report, benchmark.records, benchmark.measurements, benchmark.summary)


def test_cells_that_could_run_are_told_from_those_that_cannot(big_benchmark):
    context = gathered(big_benchmark)
    assert context.statuses == {"ok": 16, "partial": 1, "failed": 2, "oom": 1}
    assert context.left_out == {"not built yet": ["NGC MXNet", "NGC TensorFlow 1.x"]}


def test_every_run_is_found_under_its_cell_with_its_own_record(big_benchmark):
    context = gathered(big_benchmark)
    runs = [run for suite in context.suites for cell in suite.cells for run in cell.runs]
    assert len(runs) == len(big_benchmark.measurements) == 140
    for run in runs:
        assert run.record_path == f"{run.record.run.folder}/run.json"
        assert run.row.log == f"{run.record.run.folder}/train.log"


def test_a_run_without_a_record_is_still_shown(big_benchmark):
    context = gather(big_benchmark.report, [], big_benchmark.measurements, big_benchmark.summary)
    assert all(run.record is None for suite in context.suites for run in suite.runs)
    assert context.days is None
    assert context.machines == context.setups == context.commits == []


def test_machines_that_differ_in_name_alone_are_one_machine(big_benchmark):
    (machine,) = gathered(big_benchmark).machines
    assert machine.names == ("node1", "node2", "node4")
    assert len(machine.host.gpus) == 8


def test_times_and_commits_come_from_the_records(big_benchmark):
    context = gathered(big_benchmark)
    assert context.days == ("2026-11-21", "2026-11-27")
    commit = "0123456789abcdef0123456789abcdef01234567"
    assert context.commits == [commit, f"{commit}+"]


def test_a_cell_stands_beside_the_published_one_of_the_same_batch_size(big_benchmark):
    fp32, amp = gathered(big_benchmark).suites
    published = {
        (cell.row.system, cell.row.topology): [row.throughput for row in cell.published]
        for cell in fp32.compared
    }
    assert published["oneflow", "1n1g"] == [397.64]
    assert published["pytorch", "4n8g"] == [10021.29]
    assert ("paddlepaddle", "4n8g") not in published  # it was not measured
    assert amp.compared == []  # DLPerf has no PyTorch in AMP


def changed(benchmark, cells=None, **suite) -> Context:
    """The report of the FP32 suite alone, with some of its keys, or of its table, changed."""
    fp32 = benchmark.report.suite("resnet50-fp32").model_copy(update=suite)
    report = benchmark.report.model_copy(update={"suites": (fp32,)})
    own = benchmark.summary[benchmark.summary["suite"] == "resnet50-fp32"]
    return gather(report, [], benchmark.measurements, own.assign(**(cells or {})))


def test_nothing_published_stands_beside_other_shapes_units_or_synthetic_samples(big_benchmark):
    for changes in ({"shape": {"image_size": 64}}, {"input": "synthetic"}):
        (suite,) = changed(big_benchmark, **changes).suites
        assert suite.compared == []
    (suite,) = changed(big_benchmark, {"unit": "tokens/s"}).suites
    assert suite.compared == []


def test_the_shape_is_said_in_the_words_of_the_workload(big_benchmark):
    (suite,) = changed(big_benchmark, shape={"image_size": 64}).suites
    assert suite.conditions == "Real samples from record files, image size 64; 7 repeats per cell"
    logs = {"entries": (), "sources": (LogSource(path="theirs.zip"),)}
    assert changed(big_benchmark, **logs).suites[0].conditions == "Logs from theirs.zip"
    (suite,) = changed(big_benchmark, **logs, shape={"image_size": 64}).suites
    assert suite.conditions == "Logs from theirs.zip, image size 64"


def test_a_suite_names_the_data_sets_that_its_runs_read(big_benchmark):
    def said(*formats):
        own = [
            record.model_copy(
                update={
                    "run": record.run.model_copy(update={"input": form}),
                    "data_set": SetRead(**IMAGENET, bytes=size),
                }
            )
            for record, (form, size) in zip(big_benchmark.records, formats, strict=False)
        ]
        tables = (big_benchmark.measurements, big_benchmark.summary)
        return gather(big_benchmark.report, own, *tables).suites[0].conditions

    one = ("tfrecord", 1_481_234_567)
    assert said(one, one) == (
        "Real samples from record files of imagenet (12,811 images; 1,481.2 MB as tfrecord), image "
        "size 224; 7 repeats per cell"
    )
    both = " of imagenet (12,811 images; 1,400.0 MB as recordio, 1,481.2 MB as tfrecord), "
    assert both in said(one, ("recordio", 1_400_000_000))


def test_crops_are_said_to_differ_where_tensorflow_stands_beside_others(big_benchmark):
    def differ(**changes):
        records = [
            record.model_copy(update={"run": record.run.model_copy(update=changes)})
            if record.run.system == "oneflow"
            else record
            for record in big_benchmark.records
        ]
        tables = (big_benchmark.measurements, big_benchmark.summary)
        tables = (table.replace({"system": {"oneflow": changes["system"]}}) for table in tables)
        suite = gather(big_benchmark.report, records, *tables).suites[0]
        return any(said.startswith("Crops differ") for said in suite.cautions)

    assert differ(system="tensorflow2")
    assert not differ(system="tensorflow2", input="synthetic")
    assert not differ(system="mxnet")


def test_suites_of_different_windows_are_told_apart(big_benchmark):
    report = big_benchmark.report
    names = tuple(suite.name for suite in report.suites)
    assert gathered(big_benchmark).timings == [Timing(120, Window(), names)]
    short = report.suites[1].model_copy(
        update={"iterations": 60, "window": Window(warmup=20, measured=40)}
    )
    other = report.model_copy(update={"suites": (report.suites[0], short)})
    context = gather(other, [], big_benchmark.measurements, big_benchmark.summary)
    assert context.timings == [
        Timing(120, Window(), names[:1]),
        Timing(60, Window(warmup=20, measured=40), names[1:]),
    ]
    text = " ".join(render_markdown(context, "figures").split())
    for name, measured in zip(names, (100, 40), strict=True):
        said = f"In {name}: The first 20 iterations warmed up, the next {measured} were measured."
        assert said in text


def test_logs_of_others_have_windows_and_no_number_of_iterations(big_benchmark):
    """Nobody here trained them; those that lie beside runs may have a window of their own."""
    ours, theirs = big_benchmark.report.suites
    wide = Window(warmup=20, measured=1000)
    logs = [LogSource(path="a.zip"), LogSource(path="b.zip", window=wide)]
    published = LogSource(path="c.zip", method="published")
    ours = ours.model_copy(update={"sources": (*logs, published)})
    theirs = theirs.model_copy(update={"entries": (), "sources": tuple(logs)})
    other = big_benchmark.report.model_copy(update={"suites": (ours, theirs)})
    tables = big_benchmark.measurements, big_benchmark.summary
    context = gather(other, big_benchmark.records, *tables)
    assert context.timings == [
        Timing(120, Window(), (ours.name,)),
        Timing(None, wide, (ours.name, theirs.name)),
        Timing(None, Window(), (theirs.name,)),
    ]
    text = " ".join(render_markdown(context, "figures").split())
    assert f"In {ours.name}: Every run trained 120 iterations. The first 20" in text
    assert f"In {theirs.name}, logs of others: The first 20 iterations warmed up" in text


def test_the_column_of_speedups_names_their_baseline(big_benchmark):
    assert gathered(big_benchmark).suites[0].speedup == "speedup over 1n1g"
    (suite,) = changed(big_benchmark, {"baseline": "1n8g"}).suites
    assert suite.speedup == "speedup over 1n8g"


def test_different_baselines_are_named_beside_each_speedup(big_benchmark):
    cells = big_benchmark.summary[big_benchmark.summary["suite"] == "resnet50-fp32"]
    baselines = ["1n8g" if system == "oneflow" else "1n1g" for system in cells["system"]]
    known = cells["speedup"].notna()
    mixed = cells["baseline"].where(~known, baselines)
    context = changed(big_benchmark, {"baseline": mixed})
    assert context.suites[0].speedup == "speedup"
    markdown = render_markdown(context, "figures")
    html = render_html(context, big_benchmark.figures)
    for baseline in ("1n1g", "1n8g"):
        assert f" over {baseline} |" in markdown
        assert f"<small>over {baseline}</small>" in html


def test_a_suite_without_speedups_names_no_baseline(big_benchmark):
    (suite,) = changed(big_benchmark, {"speedup": float("nan"), "baseline": ""}).suites
    assert (suite.baseline, suite.speedup) == (None, "speedup")


def test_the_fastest_of_a_topology_stands_beside_the_others(big_benchmark):
    suite = gathered(big_benchmark).suites[0]
    rankings = {ranking.topology: ranking for ranking in suite.rankings}
    one = rankings["1n1g"]
    assert one.fastest.series == "OneFlow"
    assert [rival.cell.series for rival in one.others] == ["PaddlePaddle", "PyTorch"]
    assert [round(rival.share, 2) for rival in one.others] == [0.89, 0.88]
    assert [rival.verdict for rival in one.others] == ["slower", "slower"]
    assert [rival.cell.series for rival in rankings["4n8g"].others] == ["PyTorch"]


def test_a_topology_with_one_cell_has_nobody_to_compare(big_benchmark):
    ones = big_benchmark.summary[big_benchmark.summary["system"] == "oneflow"]
    context = gather(big_benchmark.report, [], big_benchmark.measurements, ones)
    assert context.suites[0].rankings == []
