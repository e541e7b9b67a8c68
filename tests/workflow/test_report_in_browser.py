"""The report of a real benchmark in a real browser: Debian's chromium."""

import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd
import pytest
from reperf.number_format import in_four_digits
from reperf.tables import SUMMARY, read_summary, write_table

from tests.helpers.small_benchmark import Benchmark
from tests.unit.report.benchmarks import dlperf, eight_systems

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = pytest.mark.browser
DESK = {"width": 1280, "height": 900}
PHONE = {"width": 390, "height": 844}


@dataclass
class Visit:
    """A page in the browser, with what happened while it loaded."""

    page: "Page"
    errors: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)


@pytest.fixture
def report(finished: Path) -> Path:
    return finished / "results/report.html"


@pytest.fixture(scope="module")
def eight(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of eight systems on four nodes, of which some failed."""
    path = tmp_path_factory.mktemp("eight") / "report.html"
    path.write_text(eight_systems(path.parent).pages[0], encoding="utf-8")
    return path


@pytest.fixture
def visit(browser, report: Path):
    """Open the report; returns a function of the viewport and the reader's colour scheme."""

    def open_report(viewport: dict = DESK, scheme: str = "light", **settings: bool) -> Visit:
        context = browser.new_context(viewport=viewport, color_scheme=scheme, **settings)
        visit = Visit(context.new_page())
        visit.page.on("console", lambda message: visit.errors.append(message.text))
        visit.page.on("pageerror", lambda error: visit.errors.append(str(error)))
        visit.page.on("request", lambda request: visit.requests.append(request.url))
        visit.page.goto(report.as_uri())
        return visit

    return open_report


def test_the_report_loads_alone_without_a_complaint_and_shows_findings_numbers_and_figures(
    visit, report
):
    seen = visit()
    page = seen.page
    assert page.title() == "a small benchmark"
    assert seen.errors == []
    others = [url for url in seen.requests if not url.startswith("data:")]
    assert others == [report.as_uri()]
    text = page.locator("main").inner_text()
    medians = pd.read_csv(report.with_name("summary.csv"))["throughput_median"].dropna()
    assert len(medians) == 3
    assert all(in_four_digits(value) in text for value in medians)
    findings = page.locator("article.finding").all()
    assert len(findings) == 2
    assert all(finding.bounding_box()["y"] < DESK["height"] for finding in findings)
    figures = page.locator("#results figure svg")
    # The second suite has one number of devices: step times alone. No run was metered.
    kinds = ["speedup", "efficiency", "steps", "steps"]
    assert figures.locator("xpath=..").evaluate_all("all => all.map(one => one.className)") == kinds
    for figure in figures.all():
        assert figure.bounding_box()["width"] > 300
        assert figure.bounding_box()["height"] > 100


def test_the_findings_of_dlperfs_twelve_suites_fit_on_two_screens(browser, tmp_path):
    path = tmp_path / "report.html"
    path.write_text(dlperf(tmp_path).pages[0], encoding="utf-8")
    page = browser.new_page(viewport=DESK)
    page.goto(path.as_uri())
    findings = page.locator("#findings")
    assert findings.locator("article").count() == 12
    box = findings.bounding_box()
    assert box["y"] + box["height"] < 2 * DESK["height"]


@pytest.mark.parametrize("scripts", [True, False])
def test_a_reader_chooses_the_number_of_devices(visit, scripts):
    page = visit(java_script_enabled=scripts).page
    shown = page.locator("article.finding").first.locator("table.panel:visible")
    assert shown.count() == 2
    for label, titles in (("1", ["1 device"]), ("most", ["2 devices"])):
        page.locator("form.view").get_by_text(label, exact=True).click()
        assert [title.strip() for title in shown.locator("thead th").all_inner_texts()] == titles


def test_panels_compare_with_another_system_and_a_link_leads_to_that_view(eight, browser):
    page = browser.new_page(viewport=DESK)
    page.goto(eight.as_uri())
    panel = page.locator("table.panel").first
    ratio = panel.locator("tr[data-series='OneFlow'] .ratio")
    before = ratio.inner_text()
    assert before.startswith("\N{MINUS SIGN}")
    page.get_by_label("Relative to").select_option("TensorFlow 2.x")
    assert ratio.inner_text().startswith("+2")
    assert panel.locator("tr[data-series='TensorFlow 2.x'] .ratio").inner_text() == "the base"
    page.locator("form.view").get_by_text("8", exact=True).click()
    link = page.get_by_text("Link to this view").get_attribute("href")
    other = browser.new_page(viewport=DESK)
    other.goto(eight.as_uri() + link)
    assert other.get_by_label("Relative to").input_value() == "TensorFlow 2.x"
    assert other.locator("article.finding").first.locator("table.panel:visible").count() == 1
    page.get_by_label("Relative to").select_option("PaddlePaddle")  # it failed on two nodes
    page.locator("form.view").get_by_text("16", exact=True).click()
    heading = page.locator("table.panel:visible thead th").first.inner_text()
    assert heading.split("\n") == ["16 GPUs on 2 nodes", "no PaddlePaddle: to the fastest"]
    page.get_by_label("Relative to").select_option("")
    page.locator("form.view").get_by_text("all", exact=True).click()
    assert ratio.inner_text() == before


def test_the_ratio_of_a_script_is_the_ratio_of_the_statistics(eight, browser):
    page = browser.new_page(viewport=DESK)
    page.goto(eight.as_uri())
    cells = page.locator("table.panel").first.locator("tbody tr[data-series] .ratio")
    made = cells.all_inner_texts()[1:]
    page.get_by_label("Relative to").select_option("NGC PyTorch")
    assert cells.all_inner_texts()[1:] == made


def test_columns_show_on_demand_and_rows_are_sorted_and_filtered(visit, report):
    seen = visit()
    page = seen.page
    columns = page.locator("#suite-small .more-each")
    assert columns.count() == 3  # the heading and two cells
    assert not columns.first.is_visible()
    page.get_by_label("Median per device").check()
    summary = pd.read_csv(report.with_name("summary.csv")).query("suite == 'small'")
    shown = [in_four_digits(value) for value in summary["per_device"]]
    assert columns.all_inner_texts() == ["Median per device", *shown]
    table = page.locator("#suite-small table.sortable")
    places = table.locator("tbody tr:visible abbr")
    assert places.all_inner_texts() == ["1n1g", "1n2g"]
    topology = table.get_by_role("button", name="Topology")
    for order in (["1n1g", "1n2g"], ["1n2g", "1n1g"], ["1n1g", "1n2g"]):  # up, down, as they were
        topology.click()
        assert places.all_inner_texts() == order
    page.locator("#suite-small input.filter").fill("stand-in 1n2g")
    assert places.all_inner_texts() == ["1n2g"]
    assert table.locator("tbody tr:visible th").all_inner_texts() == ["Stand-in"]
    assert seen.errors == []


def test_without_scripts_the_page_says_the_same(visit):
    page = visit(java_script_enabled=False).page
    assert page.locator("#suite-small table.sortable tbody tr").count() == 2
    assert page.locator("input.filter").count() == 0
    page.get_by_label("Median per device").check()
    assert page.locator("#suite-small .more-each").first.is_visible()


def test_provenance_opens_on_demand(visit, report):
    page = visit().page
    log = page.get_by_text("results/runs/small/stand-in/1n1g/1/train.log", exact=True)
    assert not log.is_visible()
    page.locator("#suite-small details.runs > summary").click()
    page.locator("#suite-small details.runs details > summary").first.click()
    assert log.is_visible()
    for link in page.locator("#suite-small details.runs a").all():
        file = report.parent / link.get_attribute("href")
        assert file.read_bytes()
        assert file.name in ("train.log", "run.json")
    log.click()
    page.get_by_text(":::MLLOG").first.wait_for()


def brightness(page: "Page", element: str, what: str) -> float:
    """How bright an element's colour is, 0 to 255."""
    colour = page.locator(element).first.evaluate(f"e => getComputedStyle(e).{what}")
    channels = colour[colour.index("(") + 1 : -1].split(",")[:3]
    return sum(map(float, channels)) / 3


@pytest.mark.parametrize(("scheme", "dark"), [("light", False), ("dark", True)])
def test_the_theme_is_the_readers_colour_scheme_until_a_button_changes_it(visit, scheme, dark):
    page = visit(scheme=scheme).page
    assert (brightness(page, "body", "backgroundColor") < 60) == dark
    assert (brightness(page, "body", "color") > 180) == dark
    word = "#results figure svg g[style*='--ink']"  # letters are paths, filled with a colour
    for theme in ("dark", "light"):
        page.get_by_text(theme, exact=True).click()
        assert (brightness(page, "body", "backgroundColor") < 60) == (theme == "dark")
        assert (brightness(page, word, "fill") > 128) == (theme == "dark")


def test_on_a_phone_the_page_does_not_scroll_sideways(visit):
    page = visit(viewport=PHONE).page
    page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    width = page.evaluate("document.documentElement.scrollWidth")
    assert width <= PHONE["width"]


def test_on_a_phone_the_finding_and_its_median_are_on_the_first_screen(eight, browser):
    page = browser.new_page(viewport=PHONE)
    page.goto(eight.as_uri())
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    for element in ("article.finding h2", "table.panel .value", "table.panel tbody th"):
        box = page.locator(element).first.bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= PHONE["width"]
        assert box["y"] + box["height"] <= PHONE["height"]
    table = page.locator("table.sortable tbody tr").first
    median = table.locator("td").nth(1).bounding_box()
    assert median["x"] + median["width"] <= PHONE["width"]


def test_on_a4_no_column_is_cut_off(eight, browser):
    width = 703  # CSS pixels between the margins of 12 mm
    page = browser.new_page(viewport={"width": width, "height": 1000})
    page.emulate_media(media="print")
    page.goto(eight.as_uri())
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    for table in page.locator("table:visible").all():
        box = table.bounding_box()
        assert box["x"] + box["width"] <= width + 1


@pytest.mark.parametrize("mark", ["", "scattered"])
def test_readmes_picture_is_that_of_a_report_without_a_mark(finished_benchmark: Benchmark, mark):
    folder = finished_benchmark.folder
    summary, readme = folder / "results/summary.csv", folder / "README.md"
    cells = read_summary(summary)
    marked = cells.assign(marks=cells["marks"].where(cells["status"] == "unsupported", mark))
    write_table(summary, marked.to_dict("records"), SUMMARY)
    picture, before = folder / "docs/images/report.png", readme.read_text()
    picture.unlink()
    answer = finished_benchmark.call(sys.executable, "docs/make_picture.py")
    assert answer.returncode == bool(mark), answer.stdout
    if mark:
        assert "summary.csv: small stand-in: scattered; small" in answer.stdout
    else:
        assert picture.read_bytes().startswith(b"\x89PNG")
    assert (readme.read_text() == before) == bool(mark)
    assert picture.exists() != bool(mark)
