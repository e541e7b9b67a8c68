"""What the report says of what `reperf doctor` found."""

import pytest
from reperf.doctor.diagnosis import Diagnosis
from reperf.report.context import gather
from reperf.report.html import render_html
from reperf.report.markdown import render_markdown

from tests.helpers.written_probes import diagnosis, with_part

HOSTILE = "<script>alert('x')</script> | **bold**"


def rendered(benchmark, made) -> tuple[str, str]:
    context = gather(
        benchmark.report, benchmark.records, benchmark.measurements, benchmark.summary, made
    )
    return render_html(context, benchmark.figures), render_markdown(context, "figures")


def diagnosis_of_an_ill_node() -> Diagnosis:
    return diagnosis(with_part("host", cpu=HOSTILE))


@pytest.fixture(scope="module")
def of_an_ill_node(big_benchmark) -> tuple[str, str]:
    return rendered(big_benchmark, diagnosis_of_an_ill_node())


def test_the_environment_part_shows_every_finding(of_an_ill_node):
    html, markdown = of_an_ill_node
    for text in html, markdown:
        assert "2026-11-21 08:15:02 UTC, profile slurm" in text
        assert "0 errors, 1 warning" in text
        assert "all 4 nodes" in text
        assert text.count("all-reduce of pytorch.cuda") == 2  # in a node, and over nodes
        assert "<script>alert" not in text
    assert html.count('<th scope="row">GPU clocks</th>') == 1
    assert "| GPU clocks | ok | all 4 nodes | up to 1410 MHz |" in markdown
    assert html.count('<th scope="row">pytorch.cuda</th>') == 1
    assert "| pytorch.cuda | yes | 8 x NVIDIA A100-SXM4-80GB | 4e-07 | 74.7 GB/s |" in markdown


def test_equal_diagnoses_give_equal_reports(big_benchmark, of_an_ill_node):
    again = Diagnosis.model_validate_json(diagnosis_of_an_ill_node().model_dump_json())
    assert of_an_ill_node == rendered(big_benchmark, again)


def test_a_report_without_a_diagnosis_does_not_speak_of_one(plain_pages):
    for text in plain_pages:
        assert "reperf doctor" not in text


def test_the_frameworks_have_their_heading_whether_the_doctor_was_asked_or_not(
    plain_pages, of_an_ill_node
):
    for html, markdown in (plain_pages, of_an_ill_node):
        assert "\n### Frameworks\n\n| system |" in markdown
        assert html.count("<h3>Frameworks</h3>") == 1
