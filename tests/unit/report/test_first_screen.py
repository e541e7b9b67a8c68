"""The first screen: who is fastest, by how much, how sure; and above it what is wrong."""

import re
from base64 import b64decode
from io import StringIO

import pandas as pd
import pytest
from reperf.number_format import in_four_digits
from reperf.report.scale import Scale

from tests.unit.report.benchmarks import Page, eight_systems

MINUS = "\N{MINUS SIGN}"


@pytest.fixture(scope="module")
def screen(eight_page) -> str:
    return eight_page.partition('<section id="findings"')[2].partition("</section>")[0]


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
    below, least, most = (f"{MINUS}{number}" for number in found.groups())
    assert f"{below} % <small>{most} to {least} %<" in row
    assert sentences[1].startswith("No clear winner on any size; on 32 GPUs NGC PyTorch cannot be")
    panels = re.findall(r'<table class="panel on-(\d+)', screen)
    assert panels == ["1", "8", "16", "32"] * 2


def test_a_row_a_system_has_a_dot_a_run_its_ratio_with_an_interval_and_its_number(eight, screen):
    rows, cells = rows_of(screen), eight.summary
    assert len(rows) == len(cells)
    for cell in cells[cells["n"] > 0].itertuples():
        number = f">{in_four_digits(cell.throughput_median)}</a>"
        own = [row for row in rows if number in row and row.count("<circle") == cell.n]
        assert own
        assert all(re.search(r"fastest|highest|%.*<small>.* to .* %</small>", row) for row in own)


def test_colours_failures_and_marks_stand_in_their_rows(screen):
    fp32, amp = screen.split("</article>")[:2]
    assert [row.count('<tr class="fastest') for row in (fp32, amp)] == [4, 0]
    assert [row.count('<tr class="unsure') for row in (fp32, amp)] == [0, 2 * 4]
    gone = [row for row in rows_of(screen) if 'class="gone"' in row]
    assert len(gone) == 2 * 2 + 1
    assert "PaddlePaddle" in gone[0]
    assert "failed: rank 3: &lt;script&gt;" in gone[0]
    assert screen.count('title="1 of 7 repeats not measured; timeout: no sign') == 2
    for mark in "bound by loader", "machine busy":
        marked = [row for row in rows_of(screen) if mark in row]
        assert len(marked) == 2 * 2
        assert all(">PaddlePaddle" in row for row in marked)


def test_what_is_wrong_stands_above_the_findings(eight_page):
    text = Page(eight_page.partition("<form")[0] + "</section></main></body></html>").text
    wrong = ("57 of 64 cells measured in full", "4 failed", "1 oom", "2 partial", "scattered")
    wrong += ("4 shared the machine", "4 waited for data")
    assert [words for words in wrong if words not in text] == []
    gpus = "8 × Tesla V100-SXM2-16GB, 3 nodes node1, node2, node4 , 2026-11-21 to"  # noqa: RUF001
    assert f"{gpus} 2026-11-27" in text


def test_hovering_over_a_dot_shows_its_value_n_and_log(eight, screen):
    run = eight.measurements.iloc[0]
    said = f"repeat 1 (n = 7): {in_four_digits(run.throughput)} images/s\n{run.log}</title>"
    assert said in screen


@pytest.mark.parametrize(("busy", "lines"), [(0.25, 0), (0.26, 1)])
def test_a_banner_says_that_numbers_beside_much_other_work_are_not_usable(tmp_path, busy, lines):
    html, markdown = eight_systems(tmp_path, repeats=3, busy=busy).pages
    assert html.count('role="alert"') == lines
    assert markdown.count("**These numbers are not usable.** Other work took up to") == lines
    assert markdown.count("not usable: 26.0 % other work") == lines * 30
    assert html.count("No finding: other work took up to 26\u00a0% of the machine.") == lines
    assert "5 repeats would test it" in html or lines


def test_a_scattered_cell_has_no_speedup_on_any_page(eight, eight_page):
    scattered = eight.summary.query("speedup_high > 1.25 * speedup_low").iloc[0]
    number = in_four_digits(scattered.throughput_median)
    table = eight_page.partition('<table class="sortable">')[2]
    row = next(row for row in table.split("</tr>") if number in row)
    assert f"{scattered.speedup:.2f}</td>" not in row
    assert "scattered</span>" in row
    line = next(line for line in eight.pages[1].splitlines() if line.endswith("| scattered |"))
    assert "| \N{EN DASH} | \N{EN DASH} |" in line


def test_the_download_is_the_summary_with_the_marks_of_the_page(eight, eight_page):
    [data] = re.findall(r'href="data:text/csv;base64,([^"]*)"', eight_page)
    table = pd.read_csv(StringIO(b64decode(data).decode()))
    assert list(table["throughput_median"]) == pytest.approx(
        list(eight.summary["throughput_median"]), nan_ok=True
    )
    assert set(table["marks"].dropna()) == {"machine busy; bound by loader", "scattered"}


def test_axes_hold_every_run_and_every_band_and_have_few_round_ticks(eight):
    scale = Scale.of([0.61, 1.02])
    assert scale.ticks == (0.6, 0.8, 1.0)
    assert 0 < float(scale.place(0.61)) < float(scale.place(1.02)) < 100
    assert Scale.of([]).ticks
    # An interval may be wider than all dots are apart: its ratios are of two noisy cells.
    runs = eight.measurements
    noisy = eight.with_runs(throughput=runs["throughput"] * (1 + 0.4 * (runs["repeat"] % 2)))
    bands = re.findall(r'<rect x="([-\d.]+)%" width="([\d.]+)%"', noisy.pages[0])
    assert len(bands) > 20
    assert all(0 <= float(x) <= float(x) + float(width) <= 100 for x, width in bands)
