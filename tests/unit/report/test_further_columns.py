"""What only some reports have: a second unit, a loss that all share, columns on demand, marks."""

from dataclasses import replace

import pytest
from reperf.config import Report
from reperf.report.context import gather

OTHER = {"oneflow": 7.2345, "pytorch": 7.2346, "paddlepaddle": 7.3456}


@pytest.fixture(scope="module")
def told(big_benchmark, tmp_path_factory) -> tuple[str, str]:
    """The HTML and the Markdown of a report on sentences whose tokens are counted, too."""
    runs = big_benchmark.measurements
    cells = big_benchmark.summary
    benchmark = replace(
        big_benchmark,
        report=reading(big_benchmark.report, "synthetic"),
        measurements=runs.assign(
            start_loss=runs["system"].map(OTHER),
            also_throughput=runs["throughput"] * 100,
            also_unit="tokens/s",
        ),
        summary=cells.assign(also_median=cells["throughput_median"] * 100, also_unit="tokens/s"),
    )
    return benchmark.write(tmp_path_factory.mktemp("further"))


def reading(report: Report, samples: str) -> Report:
    """The report with another input in every suite."""
    suites = tuple(suite.model_copy(update={"input": samples}) for suite in report.suites)
    return report.model_copy(update={"suites": suites})


def test_what_else_is_counted_has_a_column_of_its_own(told, big_benchmark):
    html, markdown = told
    assert html.count('<th scope="col" class="n">tokens/s</th>') == 2
    assert markdown.count(" | throughput | tokens/s | min | ") == 2
    for median in big_benchmark.summary["throughput_median"].dropna():
        assert f" | {100 * median:.2f} | " in markdown


def test_a_system_that_starts_from_another_loss_says_so(told):
    html, markdown = told
    for text in told:
        assert "the loss of PaddlePaddle on 1n1g is 7.3456" in text
        assert "that of most others on the same batch 7.23455" in text
        assert "the loss of OneFlow" not in text
        assert "the loss of PyTorch" not in text
    assert html.count("starts elsewhere</span>") == 2
    assert markdown.count("**starts elsewhere**") == 2


def test_systems_that_crop_images_at_random_start_from_other_losses(big_benchmark):
    runs = big_benchmark.measurements
    told = gather(
        reading(big_benchmark.report, "records"),
        big_benchmark.records,
        runs.assign(start_loss=runs["system"].map(OTHER)),
        big_benchmark.summary,
    )
    assert not any(cell.stray for suite in told.suites for cell in suite.cells)


def test_other_reports_have_neither(plain_pages):
    for text in plain_pages:
        assert "tokens/s</th>" not in text
        assert "elsewhere" not in text


def test_a_cell_beside_other_work_is_marked(big_benchmark, plain_pages):
    html, markdown = plain_pages
    beside = big_benchmark.summary.query("load > 0.05 and n > 0")
    assert set(beside["system"]) == {"paddlepaddle"}
    assert html.count("beside other work</span></td>") == len(beside)
    assert markdown.count(", **beside other work** |") == len(beside)
    assert "1.0 % of the CPUs&#39; time before, 25.0 % of the CPUs&#39; time during" in html
    for text in (html, markdown):
        assert text.count("Beside other work: other processes took more than 5 % of the") == 1


def test_columns_on_demand_are_those_of_which_something_is_known(big_benchmark, plain_pages):
    html, markdown = plain_pages
    cell = big_benchmark.summary.query("n > 0").iloc[0]
    shown = {"each": f"{cell['per_device']:.2f}", "memory": "14.0 GiB", "hosts": cell["hosts"]}
    for name, value in shown.items():
        assert f'id="show-{name}"' in html
        assert f'more-{name}">{value}</td>' in html
        assert f" {value} |" in markdown
    assert cell["key"].split(" ")[0] in markdown
    assert "show-energy" not in html
    assert "J a sample" not in markdown


def test_a_speedup_that_says_nothing_says_so(big_benchmark, plain_pages, tmp_path):
    summary = big_benchmark.summary.assign(speedup_low=1.2, speedup_high=1.6)
    wide = replace(big_benchmark, summary=summary).write(tmp_path)
    for pages, marks in ((plain_pages, 0), (wide, 1)):
        for text in pages:
            assert ("scattered" in text) == bool(marks)
            assert ("1.20 to 1.60" in text) == bool(marks)
            assert text.count("Scattered: single repeats give speedups") == 2 * marks


def test_too_few_repeats_are_told_how_many_could_do(big_benchmark, plain_pages, tmp_path):
    few = big_benchmark.summary.assign(n=3, ci_level=float("nan"))
    for text in replace(big_benchmark, summary=few).write(tmp_path):
        assert "Too few repeats to tell all apart: 5 repeats could" in text  # of three
        assert "An interval of the median takes 6 repeats" in text
    assert all("Too few" not in text for text in plain_pages)


def test_runs_that_differ_make_no_one_thing(big_benchmark):
    runs = big_benchmark.measurements
    first = runs["repeat"] == 1
    other = runs["key"].where(~first, runs["key"].str.replace("lock ab", "lock cd"))
    context = gather(
        big_benchmark.report, big_benchmark.records, runs.assign(key=other), big_benchmark.summary
    )
    assert "of OneFlow on 1n1g differ in build, so that" in " ".join(context.suites[0].cautions)
