"""The HTML report: whole, harmless, and true to the tables."""

import random
import re
from collections import Counter
from dataclasses import replace

import pytest
from reperf.number_format import ABSENT, in_four_digits, number, percent, published_speedup
from reperf.records.run_record import Power
from reperf.report.html import SCRIPT, render_html
from reperf.report.markdown import render_markdown

from tests.unit.report.benchmarks import Page


@pytest.fixture(scope="module")
def html(plain_pages) -> str:
    return plain_pages[0]


def test_every_number_of_the_summary_is_shown(page, big_benchmark):
    summary = big_benchmark.summary
    shown = {"ci_level": percent, "speedup": number, "speedup_low": number, "speedup_high": number}
    for column in summary.columns[summary.columns.str.startswith(("throughput", "ci_", "speedup"))]:
        show = shown.get(column, in_four_digits)
        for value in summary[column].dropna():
            assert show(value) in page.text, (column, value)
    for value in summary["efficiency"].dropna():
        assert percent(value) in page.text


def test_a_bad_cell_shows_its_status_and_reason_once_and_no_number(page):
    assert "CUDA out of memory on rank 0" in page.text
    assert "1 of 7 repeats not measured; timeout: no sign of life for 1800 s" in page.text
    assert "rank 0 at iteration 40 after 61.50 s" in page.text
    assert "nan" not in page.text.lower().split()
    assert "<NA>" not in page.text
    assert page.text.count("not built yet") == 1


def test_a_cell_that_waited_for_its_data_is_marked_as_bound_by_its_loader(page, html):
    tables = re.findall(r'<table class="sortable">.*?</table>', html, flags=re.DOTALL)
    found = [row for table in tables for row in re.findall(r"(?s)<tr>.*?</tr>", table)]
    assert {"25.0 %" in row for row in found if "bound by loader" in row} == {True}
    assert {"25.0 %" in row for row in found if "bound by loader" not in row} == {False}
    assert "2 waited for data" in page.text
    assert page.text.count("Bound by its loader: training waited for the next batch") == 1


def test_every_run_names_its_log_hash_command_settings_and_record(page, big_benchmark):
    for record in big_benchmark.records:
        assert f"{record.run.folder}/train.log" in page.text
        assert f"{record.run.folder}/run.json" in page.text
        assert record.log_sha256 in page.text
    assert page.text.count("torchrun --nnodes=4 train.py") == 7 * 5
    settings = "cudnn.benchmark=True, TF_SYNC_ON_FINISH=0"
    assert page.text.count(settings) == len(big_benchmark.records)


def test_power_names_its_nodes_and_its_iterations(big_benchmark):
    said = {"mean_watts": 250.0, "energy_joules": 7500.0, "mean_utilisation_percent": 98.0}
    window = Power(**said, nodes=("node1",), first=20, last=120)
    old = Power(**said)
    records = [
        record.model_copy(update={"power": power, "nodes": ("node1", "node2")})
        for record, power in zip(big_benchmark.records, (window, old), strict=False)
    ]
    text = Page(big_benchmark.but(records=records).pages[0]).text
    assert re.search(
        r"GPUs of node1, 1 of 2 nodes: 250\S* W on average, \S+ J, 98\S* % busy, "
        r"iterations 20 to 120",
        text,
    )
    assert "GPUs of the first node, 1 of 2 nodes: " in text
    assert "over the whole run, its start included" in text


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


def test_published_tables_and_contradictions_have_a_page_of_their_own(published_page):
    for printed in ("12,411.97", "33,141.02", "31,958.78", "8,032", "151.468", "281.537"):
        assert printed in published_page.text, printed
    assert "a median that its repeats do not give" in published_page.text
    figures = [attributes for tag, attributes in published_page.elements if tag == "svg"]
    assert len(figures) == 3 * 11 + 2  # eleven tables have a speedup, two epochs
    assert "4 32 31,958.78 22.14" in published_page.text


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


def test_no_page_names_a_file_that_nobody_has(written):
    assert "seed:" not in "".join(written)
    assert "(Oneflow-Inc/DLPerf: reports/dlperf_benchmark_test_report_v1.md)" in written[2]


def test_the_archives_to_send_are_named_with_their_sha256(big_benchmark, html):
    archives = {"archive/resnet50-fp32.zip": "ab" * 32, "archive/resnet50-amp.zip": "cd" * 32}
    context = replace(big_benchmark.context, archives=archives)
    page = Page(render_html(context, big_benchmark.figures, "../"))
    links = [attributes.get("href") for tag, attributes in page.elements if tag == "a"]
    assert {f"../{name}" for name in archives} | {"#archives"} <= {*links}
    for text in (page.text, render_markdown(context, "figures")):
        assert "reperf archive verify archive/*.zip" in text
        assert "send the archive of their suite" in text
        for name, digest in archives.items():
            assert re.search(rf"{name} (\| )?{digest}", text)
    assert "archive/" not in html


def test_one_run_alone_shows_no_spread(big_benchmark):
    columns = {f"throughput_{name}": 123.45 for name in ("median", "min", "max")}
    odd = {"n": 1, "throughput_iqr": float("nan"), "ci_level": float("nan")}
    lonely = big_benchmark.summary.assign(**columns, **odd).iloc[:1]
    html, markdown = big_benchmark.but(summary=lonely).pages
    # In the table and beside the published number, the median alone; the panel has a link to it.
    assert html.count("<b>123.5</b>") == 2
    assert html.count(">123.5</a>") == 1
    for name in ("least", "greatest", "iqr", "interval"):
        assert f'id="show-{name}"' not in html  # no column without a value
    assert f"| 1 | 123.45 | {ABSENT} | {ABSENT} |" in markdown


def test_equal_inputs_give_equal_bytes(big_benchmark, html):
    shuffled = random.Random(1).sample(big_benchmark.records, k=len(big_benchmark.records))
    assert big_benchmark.but(records=shuffled).pages[0] == html


def test_a_report_in_which_nothing_could_run_still_reads(big_benchmark):
    nothing = dict.fromkeys(("throughput_median", "speedup", "efficiency"), float("nan"))
    unsupported = big_benchmark.with_cells(
        status="unsupported", reason="not built yet", **nothing
    ).but(records=[], measurements=big_benchmark.measurements.iloc[:0])
    html, markdown = unsupported.pages
    for text in (Page(html).text, markdown):
        assert re.search(r"Left out: OneFlow, .*\. The reason: not built yet\.", text)
        assert "No cell could be tried." in text
        assert "0 training runs" in text


def test_a_report_of_logs_that_others_made_says_nothing_of_runs(big_benchmark):
    foreign = {"source": "logs.zip"}
    logs = big_benchmark.with_runs(**foreign).with_cells(**foreign).but(records=[])
    html, markdown = logs.pages
    for text in (Page(html).text, markdown):
        assert "140 logs of others" in text
        for said in ("training run", "Every run trained", "A device is", "seed", "Frameworks"):
            assert said not in text, said
