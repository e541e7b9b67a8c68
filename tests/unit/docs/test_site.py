"""The site of README and pages: whole, and searched without a network."""

import re
import shutil
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from playwright.sync_api import expect
from reperf.layout import ROOT

pytestmark = pytest.mark.long
SOURCES = (
    *("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "LICENSE", "site.yaml", "zensical.toml"),
    *("docs", "hosts", "reports", "slurm", "benchmarks", "workflow", "tests/systems"),
    *("data/published", "data/measured"),
)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    for name in SOURCES:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy2
        copy(ROOT / name, folder / name)
    program = [sys.executable, "docs/build_site.py"]
    answer = subprocess.run(program, cwd=folder, check=False, capture_output=True, text=True)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    return folder / "site/html"


def test_all_that_its_pages_name_lies_in_it(site):
    pages = sorted(site.rglob("*.html"))
    assert len(pages) > 20
    missing = []
    for page in pages:
        for link in re.findall(r'\b(?:href|src)="([^"]*)"', page.read_text(encoding="utf-8")):
            parts = urlsplit(link)
            if not parts.scheme and parts.path and page.name != "404.html":
                target = page.parent / unquote(parts.path)
                if not target.exists():
                    missing.append(f"{page.relative_to(site)}: {link}")
    assert not missing


@pytest.mark.browser
def test_it_is_searched_from_a_disk_and_loads_nothing_from_elsewhere(site, browser):
    asked = []
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.on("request", lambda request: asked.append(request.url))
    page.goto((site / "docs/plans.html").as_uri())
    # Keys that come before the page has read its index are lost, and so is Control+k.
    page.get_by_role("button", name="Search").click()
    field = page.get_by_role("combobox", name="Search")
    expect(field).to_be_focused()
    field.fill("all-reduce")
    page.get_by_text(re.compile(r"\d+ results?")).wait_for()
    assert [url for url in asked if not url.startswith(("file:", "data:", "about:"))] == []
