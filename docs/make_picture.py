"""Take README's picture, and the sentence below it, from the report of a quiet `make report`.

    make report && .venv/bin/python docs/make_picture.py

Refused while a cell has a mark or no number: README shows what a quiet machine measures.
"""

import json
import re
import shutil
import sys
from datetime import datetime
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright
from reperf.errors import ReperfError
from reperf.tables import read_summary

CAPTION = re.compile(r"(?<=\(docs/images/report\.png\)\n\n)\*[^*]+\*")
"""The sentence in README below the picture."""
WIDTH, SCALE, MARGIN = 1200, 1.5, 16


def caption_of(results: Path) -> str:
    """The sentence below the picture, from the records of runs.

    Raises:
        ReperfError: a cell has a mark, or lacks a number.
    """
    cells = read_summary(results / "summary.csv")
    odd = cells[~cells["status"].isin(["ok", "unsupported"]) | (cells["marks"] != "")]
    if len(odd):
        reasons = "; ".join(
            f"{row.suite} {row.system}: {row.marks or row.status}" for row in odd.itertuples()
        )
        raise ReperfError(f"{results}/summary.csv: {reasons}; allowed: cells without a mark")
    records = [json.loads(path.read_bytes()) for path in results.glob("runs/*/*/*/*/run.json")]
    first, last = min(run["started"] for run in records), max(run["ended"] for run in records)
    minutes = (datetime.fromisoformat(last) - datetime.fromisoformat(first)).total_seconds() / 60
    cores = records[0]["host"]["cores"]
    return (
        f"*The first screen of what `make report` measured on {cores} CPU cores on {first[:10]}: "
        f"{len(records)} runs in {minutes:.1f} minutes.*"
    )


def take(browser: Browser, page: Path, picture: Path) -> None:
    """Save a report's first screen, in light colours."""
    screen = {"width": WIDTH, "height": 900}
    view = browser.new_page(viewport=screen, device_scale_factor=SCALE, color_scheme="light")
    view.goto(page.resolve().as_uri())
    box = view.locator("#findings").bounding_box()
    height = box["y"] + box["height"] + MARGIN
    view.screenshot(path=picture, clip={"x": 0, "y": 0, "width": WIDTH, "height": height})
    view.close()


def main(root: Path, browser: Browser) -> None:
    """Replace the picture and README's sentence.

    Args:
        root: the checkout, whose results/ has the report.
    """
    readme = root / "README.md"
    text, found = CAPTION.subn(caption_of(root / "results"), readme.read_text(encoding="utf-8"))
    if not found:
        raise ReperfError(f"{readme}: no sentence in italics below docs/images/report.png")
    take(browser, root / "results/report.html", root / "docs/images/report.png")
    readme.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    chromium = shutil.which("chromium", path="/usr/bin")
    try:
        with sync_playwright() as play:
            browser = play.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
            main(Path(__file__).resolve().parents[1], browser)
    except ReperfError as error:
        sys.exit(f"reperf: {error}")
