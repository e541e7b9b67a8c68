"""What the report says of what `reperf doctor` found."""

import pytest
from reperf.records.diagnosis import Diagnosis

from tests.helpers.written_probes import diagnosis, with_host


@pytest.fixture(scope="module")
def ill_node(big_benchmark):
    hostile = "<script>alert('x')</script> | **bold**"
    return big_benchmark.but(diagnosis=diagnosis(with_host(cpu=hostile)))


@pytest.fixture(scope="module")
def pages(ill_node) -> tuple[str, str]:
    return ill_node.pages


def test_the_environment_part_shows_every_finding(pages):
    html, markdown = pages
    assert "2026-11-21 08:15:02 UTC, profile slurm" in html
    assert "0 errors, 1 warning" in html
    assert "all 4 nodes" in html
    assert html.count("all-reduce of pytorch.cuda") == 2  # in a node, and over nodes
    assert html.count('<th scope="row">GPU clocks</th>') == 1
    for text in pages:
        assert "<script>alert" not in text
    assert "doctor" not in markdown.partition("## How it was measured")[0]


def test_equal_diagnoses_give_equal_reports(ill_node, pages):
    again = Diagnosis.model_validate_json(ill_node.diagnosis.model_dump_json())
    assert ill_node.but(diagnosis=again).pages == pages


def test_a_report_has_its_frameworks_and_speaks_of_the_doctor_only_if_it_was_asked(
    plain_pages, pages
):
    assert "reperf doctor" not in plain_pages[0]
    for html, _ in (plain_pages, pages):
        assert html.count("<h3>Frameworks</h3>") == 1
