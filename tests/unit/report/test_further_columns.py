"""What only some workloads have: a second unit, and a first loss that all systems share."""

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


def test_other_reports_have_neither(big_benchmark, tmp_path):
    for text in big_benchmark.write(tmp_path):
        assert "tokens/s</th>" not in text
        assert "elsewhere" not in text
