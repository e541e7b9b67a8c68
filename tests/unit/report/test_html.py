"""The HTML report: whole, harmless, and true to the tables."""

import random
import re
from collections import Counter

import pytest
from reperf.number_format import ABSENT, in_four_digits, number, percent, published_speedup
from reperf.report.html import SCRIPT

from tests.unit.report.benchmarks import Page


@pytest.fixture(scope="module")
def html(plain_pages) -> str:
    return plain_pages[0]


def test_every_number_of_the_summary_is_shown(page, big_benchmark):
    summary = big_benchmark.summary
    shown = {"ci_level": percent, "speedup": number, "speedup_low": number, "speedup_high": number}
    shown |= {"efficiency": percent}
    begins = ("throughput", "ci_", "speedup", "efficiency")
    for column in summary.columns[summary.columns.str.startswith(begins)]:
        show = shown.get(column, in_four_digits)
        for value in summary[column].dropna():
            assert show(value) in page.text, (column, value)


def test_a_bad_cell_shows_its_status_and_reason_once_and_no_number(page):
    assert "CUDA out of memory on rank 0" in page.text
    assert "1 of 7 repeats not measured; timeout: no sign of life for 1800 s" in page.text
    assert "rank 0 at iteration 40 after 61.50 s" in page.text
    assert not {"nan", "<na>"} & {*page.text.lower().split()}
    assert page.text.count("not built yet") == 1


def test_a_cell_that_waited_for_its_data_or_shared_its_machine_is_marked(page, html):
    tables = re.findall(r'<table class="sortable">.*?</table>', html, flags=re.DOTALL)
    found = [row for table in tables for row in re.findall(r"(?s)<tr>.*?</tr>", table)]
    marked = [row for row in found if "bound by loader" in row]
    assert {"25.0 %" in row and "PaddlePaddle" in row for row in marked} == {True}
    assert {"25.0 %" in row for row in found if row not in marked} == {False}
    assert [row for row in found if "machine busy" in row] == marked
    assert "2 waited for data" in page.text
    assert "25.0 % of the CPUs' time during" in page.text
    for words in "Bound by its loader: training waited for the", "Machine busy: other processes":
        assert page.text.count(words) == 1


def test_columns_on_demand_are_those_of_which_something_is_known(big_benchmark, html):
    cell = big_benchmark.summary.query("n > 0").iloc[0]
    each = in_four_digits(cell["per_device"])
    for name, value in {"each": each, "memory": "14.0 GiB", "hosts": cell["hosts"]}.items():
        assert f'id="show-{name}"' in html
        assert f'more-{name}">{value}</td>' in html
    assert cell["key"].split(" ")[0] in html
    assert "show-energy" not in html


def test_every_run_names_its_log_hash_command_settings_and_record(page, big_benchmark):
    for record in big_benchmark.records:
        assert f"{record.run.folder}/train.log" in page.text
        assert f"{record.run.folder}/run.json" in page.text
        assert record.log_sha256 in page.text
    assert "torchrun --nnodes=4 train.py" in page.text
    assert "cudnn.benchmark=True, TF_SYNC_ON_FINISH=0" in page.text


def test_the_file_needs_no_other_file_and_no_network(page, html):
    for tag, attributes in page.elements:
        assert tag not in ("img", "iframe", "object", "embed")
        for name in ("src", "href", "xlink:href"):
            link = attributes.get(name, "#")
            ours = ("../results/runs/", "published.html")
            own = tag == "a" and link.startswith(ours)  # on a click
            assert own or link.startswith(("#", "data:")), (tag, attributes)
    assert not re.search(r"@import|url\((?!#)", html)
    (script,) = re.findall(r"<script>(.*?)</script>", html, flags=re.DOTALL)
    assert script == SCRIPT.read_text(encoding="utf-8")
    assert not re.search(r"https?:|fetch|XMLHttpRequest|\bimport\b|innerHTML|eval", script)


def test_ids_are_unique_links_lead_somewhere_and_headers_have_a_scope(page):
    ids = Counter(attributes["id"] for _, attributes in page.elements if "id" in attributes)
    assert [name for name, count in ids.items() if count > 1] == []
    for _, attributes in page.elements:
        for name in ("href", "xlink:href"):
            target = attributes.get(name, "")
            assert not target.startswith("#") or target[1:] in ids, target
    assert all("scope" in attributes for tag, attributes in page.elements if tag == "th")


def test_figures_follow_the_theme_and_say_what_they_show(page, html):
    figures = [attributes for tag, attributes in page.elements if tag == "svg"]
    drawn = [figure for figure in figures if "viewbox" in figure]
    assert len(drawn) == 2 * 2  # of two suites; the throughput is what the panels show
    strips = [figure for figure in figures if figure.get("class") == "strip"]
    assert len(strips) == 17  # cells that were measured, all or in part
    for figure in drawn + strips:
        assert figure["role"] == "img"
        assert figure["aria-label"]
    drawings = "".join(re.findall(r"<svg.*?</svg>", html, flags=re.DOTALL))
    assert "var(--ink)" in drawings
    assert "#1f2933" not in drawings


def test_published_tables_and_contradictions_have_a_page_of_their_own(written):
    published = Page(written[2])
    for printed in ("12,411.97", "33,141.02", "31,958.78", "8,032", "151.468", "281.537"):
        assert printed in published.text, printed
    assert "a median that its repeats do not give" in published.text
    figures = [attributes for tag, attributes in published.elements if tag == "svg"]
    assert len(figures) == 3 * 11 + 2  # eleven tables have a speedup, two epochs
    assert "4 32 31,958.78 22.14" in published.text
    assert "(Oneflow-Inc/DLPerf: reports/dlperf_benchmark_test_report_v1.md)" in written[2]
    assert "seed:" not in "".join(written)


def test_a_speedup_that_a_report_prints_is_told_from_one_that_follows_from_it(page, big_benchmark):
    beside = big_benchmark.context.suites[0].measured[-1].published[0]
    assert f"({beside.speedup:.2f})" in page.text
    assert published_speedup(beside._replace(speedup_published=7.5)) == "7.50"
    assert published_speedup(beside._replace(speedup=float("nan"))) == ABSENT


def test_numbers_without_a_batch_size_stand_loosely_beside_ours(page):
    """PaddlePaddle has been measured on 1n8g; of FleetX's other systems and topologies, nothing."""
    assert "PaddlePaddle 1.6 2,255.00" in page.text
    assert page.text.count("Loosely beside published numbers") == 1
    assert "a document that names no batch size" in page.text
    assert page.text.count("The charts begin at 8 devices") == 1


def test_equal_inputs_give_equal_bytes(big_benchmark, html):
    shuffled = random.Random(1).sample(big_benchmark.records, k=len(big_benchmark.records))
    assert big_benchmark.but(records=shuffled).pages[0] == html
