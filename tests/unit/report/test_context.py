"""What the report gathers from records and tables."""

from reperf.report.context import gather


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


def test_nothing_published_stands_beside_other_images_or_synthetic_ones(big_benchmark):
    fp32 = big_benchmark.report.suite("resnet50-fp32")
    for changes in ({"image_size": 64}, {"input": "synthetic"}):
        suites = (fp32.model_copy(update=changes),)
        report = big_benchmark.report.model_copy(update={"suites": suites})
        own = big_benchmark.summary[big_benchmark.summary["suite"] == "resnet50-fp32"]
        (suite,) = gather(report, [], big_benchmark.measurements, own).suites
        assert suite.compared == []


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
