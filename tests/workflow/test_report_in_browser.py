"""The report of a real benchmark in a real browser: Debian's chromium."""

import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd
import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from tests.helpers.refusal import cannot_run
from tests.helpers.small_benchmark import Benchmark

pytestmark = pytest.mark.browser
CHROMIUM = shutil.which("chromium") or shutil.which("chromium", path="/usr/bin")
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
DESK = {"width": 1280, "height": 900}
PHONE = {"width": 390, "height": 844}


@dataclass
class Visit:
    """A page in the browser, with what happened while it loaded."""

    page: Page
    errors: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    if CHROMIUM is None:
        cannot_run("a browser to open the report in: apt-get install chromium")
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield chromium
        chromium.close()


@pytest.fixture
def report(finished_benchmark: Benchmark) -> Path:
    return finished_benchmark.folder / "results/report.html"


@pytest.fixture
def visit(browser: Browser, report: Path):
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


def test_the_report_loads_alone_and_without_a_complaint(visit, report):
    seen = visit()
    assert seen.page.title() == "a small benchmark"
    assert seen.errors == []
    others = [url for url in seen.requests if not url.startswith("data:")]
    assert others == [report.as_uri()]


def test_every_number_of_the_summary_is_on_the_page(visit, report):
    text = visit().page.locator("main").inner_text()
    summary = pd.read_csv(report.with_name("summary.csv"))
    measured = summary[summary["status"] == "ok"]
    assert len(measured) == 3
    for value in measured[["throughput_median", "speedup"]].to_numpy().ravel():
        assert f"{value:,.2f}" in text
    several = measured[measured["n"] > 1]
    assert len(several) == 2
    columns = ["throughput_min", "throughput_max", "throughput_iqr"]
    for value in several[columns].to_numpy().ravel():
        assert f"{value:,.2f}" in text
    for value in measured["efficiency"]:
        assert f"{100 * value:.1f} %" in text


def test_the_figures_are_drawn(visit):
    figures = visit().page.locator("#results figure svg")
    assert figures.count() == 3 + 1  # the second suite has one number of devices: none scales
    for figure in figures.all():
        assert figure.bounding_box()["width"] > 300
        assert figure.bounding_box()["height"] > 100


def test_columns_show_on_demand(visit, report):
    page = visit().page
    columns = page.locator("#suite-small .more-each")
    assert columns.count() == 3  # the heading and two cells
    assert not columns.first.is_visible()
    page.get_by_label("Median a device").check()
    summary = pd.read_csv(report.with_name("summary.csv")).query("suite == 'small'")
    shown = [f"{value:,.2f}" for value in summary["per_device"]]
    assert columns.all_inner_texts() == ["Median a device", *shown]


def test_rows_are_sorted_and_filtered(visit):
    seen = visit()
    table = seen.page.locator("#suite-small table.sortable")
    places = table.locator("tbody tr:visible abbr")
    assert places.all_inner_texts() == ["1n1g", "1n2g"]
    topology = table.get_by_role("button", name="Topology")
    for order in (["1n1g", "1n2g"], ["1n2g", "1n1g"], ["1n1g", "1n2g"]):  # up, down, as they were
        topology.click()
        assert places.all_inner_texts() == order
    seen.page.locator("#suite-small input.filter").fill("stand-in 1n2g")
    assert places.all_inner_texts() == ["1n2g"]
    assert table.locator("tbody tr:visible th").all_inner_texts() == ["Stand-in"]
    assert seen.errors == []


def test_a_series_is_hidden_from_all_figures_of_its_suite_and_shown_again(visit):
    seen = visit()
    figures = seen.page.locator("#published .figures").first
    box = seen.page.locator("#published fieldset.series").first.get_by_label("PyTorch", exact=True)
    drawn = figures.locator("svg:has(g:visible[data-series='PyTorch'])")
    for shown in (3, 0, 3):
        assert drawn.count() == shown
        assert figures.locator("svg:has(g:visible[data-series='MXNet'])").count() == 3
        box.press("Space")
    assert seen.errors == []


def test_without_scripts_the_page_says_the_same(visit):
    page = visit(java_script_enabled=False).page
    assert page.locator("#suite-small .wide table tbody tr").count() == 2
    assert page.locator("input.filter").count() == 0
    page.get_by_label("Median a device").check()
    assert page.locator("#suite-small .more-each").first.is_visible()


def test_provenance_opens_on_demand(visit, report):
    page = visit().page
    log = page.get_by_text("results/runs/small/stand-in/1n1g/1/train.log")
    assert not log.is_visible()
    page.locator("#suite-small details.runs > summary").click()
    page.locator("#suite-small details.runs details > summary").first.click()
    assert log.is_visible()
    for link in page.locator("#suite-small details.runs a").all():
        file = report.parent / link.get_attribute("href")
        assert file.read_bytes()
        assert file.name in ("train.log", "run.json")
    log.click()
    assert ":::MLLOG" in page.locator("body").inner_text()


def brightness(page: Page, element: str, what: str) -> float:
    """How bright an element's colour is, 0 to 255."""
    colour = page.locator(element).first.evaluate(f"e => getComputedStyle(e).{what}")
    channels = colour[colour.index("(") + 1 : -1].split(",")[:3]
    return sum(map(float, channels)) / 3


@pytest.mark.parametrize(("scheme", "dark"), [("light", False), ("dark", True)])
def test_the_report_follows_the_readers_colour_scheme(visit, scheme, dark):
    page = visit(scheme=scheme).page
    assert (brightness(page, "body", "backgroundColor") < 60) == dark
    assert (brightness(page, "body", "color") > 180) == dark


def test_the_buttons_change_the_theme_of_text_and_figures(visit):
    page = visit(scheme="light").page
    word = "#results figure svg g[id$='text_1'] g"  # letters are paths, filled with a colour
    for theme, dark in (("dark", True), ("light", False)):
        page.get_by_text(theme, exact=True).click()
        assert (brightness(page, "body", "backgroundColor") < 60) == dark
        assert (brightness(page, word, "fill") > 128) == dark


def test_on_a_phone_the_page_does_not_scroll_sideways(visit):
    page = visit(viewport=PHONE).page
    page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    width = page.evaluate("document.documentElement.scrollWidth")
    assert width <= PHONE["width"]
