"""The first screen: who is fastest, by how much, how sure; and above it what is wrong."""

import re
from base64 import b64decode
from io import StringIO

import pandas as pd
import pytest
from reperf.number_format import in_four_digits
from reperf.report.scale import Scale

from tests.unit.report.benchmarks import Benchmark, Page
from tests.unit.report.eight_systems import eight_systems


@pytest.fixture(scope="module")
def eight(tmp_path_factory) -> Benchmark:
    return eight_systems(tmp_path_factory.mktemp("eight"), suites=2)


@pytest.fixture(scope="module")
def html(eight) -> str:
    return eight.pages[0]


@pytest.fixture(scope="module")
def screen(html) -> str:
    return html.partition('<section id="findings"')[2].partition("</section>")[0]


def rows_of(screen: str) -> list[str]:
    return re.findall(r"(?s)<tr class=.*?</tr>", screen)


def test_each_suite_has_one_sentence_and_a_panel_for_each_device_count(screen):
    sentences = re.findall(r"<h2>(.*?)</h2>", screen)
    found = re.fullmatch(
        r"NGC PyTorch is fastest on every size; "
        r"on 32 GPUs OneFlow is (.*) % below it \((.*) to (.*) %\)\.",
        sentences[0].replace("\u00a0", " "),
    )
    # The row has the same numbers, on the same basis.
    row = [row for row in rows_of(screen.split("</article>")[0]) if ">OneFlow" in row][-1]
    minus = "\N{MINUS SIGN}"
    below, least, most = (f"{minus}{number}" for number in found.groups())
    assert f"{below} % <small>{most} to {least} %<" in row
    assert sentences[1].startswith("No clear winner on any size; on 32 GPUs NGC PyTorch cannot be")
    panels = re.findall(r'<table class="panel on-(\d+)', screen)
    assert panels == ["1", "8", "16", "32"] * 2


def test_a_row_a_system_has_a_dot_a_run_its_ratio_with_an_interval_and_its_number(eight, screen):
    rows = rows_of(screen)
    cells = eight.summary
    assert len(rows) == len(cells)
    for cell in cells[cells["n"] > 0].itertuples():
        number = f">{in_four_digits(cell.throughput_median)}</a>"
        own = [row for row in rows if number in row and row.count("<circle") == cell.n]
        assert all(re.search(r"fastest|highest|%.*<small>.* to .* %</small>", row) for row in own)
        assert own
    assert [row for row in rows if "<circle" in row and row.count("<circle") != 7] == []


def test_green_is_for_a_winner_and_amber_for_what_cannot_be_told(screen):
    fp32, amp = screen.split("</article>")[:2]
    assert [row.count('<tr class="fastest') for row in (fp32, amp)] == [4, 0]
    assert [row.count('<tr class="unsure') for row in (fp32, amp)] == [0, 2 * 4]


def test_a_failure_stands_in_place_with_its_reason_and_a_mark_beside_its_system(screen):
    gone = [row for row in rows_of(screen) if 'class="gone"' in row]
    assert len(gone) == 2 * 2 + 1
    assert "PaddlePaddle" in gone[0]
    assert "failed: rank 3: NCCL connection closed by remote peer" in gone[0]
    for mark, system in (("bound by loader", "TensorFlow 2.x"), ("machine busy", ">MXNet")):
        marked = [row for row in rows_of(screen) if mark in row]
        assert len(marked) >= 7
        assert all(system in row for row in marked)


def test_what_is_wrong_stands_above_the_findings(html):
    text = Page(html.partition("<form")[0] + "</section></main></body></html>").text
    assert "59 of 64 cells measured in full" in text
    for wrong in ("4 failed", "1 oom", "8 shared the machine", "7 waited for data", "scattered"):
        assert wrong in text
    assert "8 × Tesla V100-SXM2-16GB node1 , 2026-11-21 to 2026-11-27" in text  # noqa: RUF001


def test_hovering_over_a_dot_shows_its_value_n_and_log(eight, screen):
    run = eight.measurements.iloc[0]
    said = f"repeat 1 of 7: {in_four_digits(run.throughput)} images/s\n{run.log}</title>"
    assert said in screen


@pytest.mark.parametrize(("busy", "lines"), [(0.25, 0), (0.26, 1)])
def test_a_banner_says_that_numbers_beside_much_other_work_are_not_usable(tmp_path, busy, lines):
    html, markdown = eight_systems(tmp_path, repeats=3, busy=busy).pages
    assert html.count('role="alert"') == lines
    assert markdown.count("**These numbers are not usable.** Other work took up to") == lines
    assert markdown.count("not usable: 26.0 % other work") == lines * 30
    assert html.count("No finding: other work took up to 26\u00a0% of the machine.") == lines
    assert "5 repeats would test it" in html or lines


def test_a_scattered_cell_has_no_speedup_on_any_page(eight, html):
    scattered = eight.summary.query("speedup_high > 1.25 * speedup_low").iloc[0]
    table = html.partition('<table class="sortable">')[2]
    [row] = [
        row for row in table.split("</tr>") if in_four_digits(scattered.throughput_median) in row
    ][:1]
    assert f"{scattered.speedup:.2f}</td>" not in row
    assert "scattered</span>" in row
    line = next(line for line in eight.pages[1].splitlines() if line.endswith("| scattered |"))
    assert "| \N{EN DASH} | \N{EN DASH} |" in line


def test_the_download_is_the_summary_with_the_marks_of_the_page(eight, html):
    [data] = re.findall(r'href="data:text/csv;base64,([^"]*)"', html)
    table = pd.read_csv(StringIO(b64decode(data).decode()))
    assert list(table["throughput_median"]) == pytest.approx(
        list(eight.summary["throughput_median"]), nan_ok=True
    )
    assert set(table["marks"].dropna()) == {"machine busy", "bound by loader", "scattered"}


def test_a_reader_chooses_device_counts_without_a_script(eight, html):
    for devices in (1, 8, 16, 32):
        assert f":root:has(#devices-{devices}:checked) .panel:not(.on-{devices})" in html
    assert 'id="devices-all" value="all" checked' in html
    assert eight.context.device_counts[16] == "16 GPUs on 2 nodes"


def test_no_band_leaves_its_plot(eight):
    """An interval may be wider than all dots are apart: its ratios are of two noisy cells."""
    runs = eight.measurements
    noisy = runs.assign(throughput=runs["throughput"] * (1 + 0.4 * (runs["repeat"] % 2)))
    html = eight.but(measurements=noisy).pages[0]
    bands = re.findall(r'<rect x="([-\d.]+)%" width="([\d.]+)%"', html)
    assert len(bands) > 20
    assert all(0 <= float(x) <= float(x) + float(width) <= 100 for x, width in bands)


def test_an_axis_holds_every_run_and_has_few_round_ticks():
    scale = Scale.of([0.61, 1.02])
    assert scale.ticks == (0.6, 0.8, 1.0)
    assert 0 < float(scale.place(0.61)) < float(scale.place(1.02)) < 100
    assert Scale.of([]).ticks
