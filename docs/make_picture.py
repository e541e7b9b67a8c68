"""Take README's picture, and the sentence below it, from a report without marks.

    make report && .venv/bin/python docs/make_picture.py
    .venv/bin/python docs/make_picture.py ANOTHER/CHECKOUT    # where another report was made
    .venv/bin/python docs/make_picture.py archive/*.zip       # one page of these suites

Refused while a cell has a mark or no number: README shows what a quiet machine measures.
"""

import re
import shutil
import sys
from collections.abc import Sequence
from contextlib import chdir
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory

import pandas as pd
from playwright.sync_api import Browser, sync_playwright
from reperf.archive.container import unpack, verified
from reperf.archive.rebuild import config_in
from reperf.config import load_report
from reperf.errors import ReperfError
from reperf.files import write_whole
from reperf.layout import ALL_SUMMARY, FIGURES, PAGES, tables_of
from reperf.records.run_record import RunRecord
from reperf.report.context import Machine, gather
from reperf.report.html import render_html
from reperf.tables import SUMMARY, read_measurements, read_summary, write_table

CAPTION = re.compile(r"(?<=\(docs/images/report\.png\)\n\n)\*[^*]+\*")
"""The sentence in README below the picture."""
RECORDS = "results/runs/*/*/*/*/run.json"
WIDTH, SCALE, MARGIN = 1200, 1.5, 16


def caption_of(folder: Path, what: str) -> str:
    """The sentence below the picture, from the records of runs.

    Args:
        folder: where the report was made.
        what: what was measured, in words.

    Raises:
        ReperfError: a cell has a mark, or lacks a number.
    """
    cells = read_summary(folder / ALL_SUMMARY)
    odd = cells[~cells["status"].isin(["ok", "unsupported"]) | (cells["marks"] != "")]
    if len(odd):
        reasons = "; ".join(
            f"{row.suite} {row.system}: {row.marks or row.status}" for row in odd.itertuples()
        )
        raise ReperfError(f"{folder / ALL_SUMMARY}: {reasons}; allowed: cells without a mark")
    records = [RunRecord.read(path) for path in folder.glob(RECORDS)]
    first, last = min(one.started for one in records), max(one.ended for one in records)
    minutes = (datetime.fromisoformat(last) - datetime.fromisoformat(first)).total_seconds() / 60
    took = f"{minutes:.1f} minutes" if minutes < 120 else f"{minutes / 60:.1f} hours"
    host, on_gpus = records[0].host, records[0].run.device == "cuda"
    device = Machine(host, ("",)).title if on_gpus else f"{host.cores} CPU cores"
    return (
        f"*The first screen of {what} on {device} on {first[:10]}: {len(records)} runs in {took}.*"
    )


def put_together(archives: Sequence[Path], folder: Path) -> None:
    """Unpack archives of suites into a folder, and make one report of them there.

    Raises:
        ReperfError: one is no archive of a suite.
    """
    reports = []
    for path in archives:
        with verified(path) as archive:
            reports.append(load_report(config_in(archive, path), str(path)))
            for name in archive.namelist():
                unpack(archive, name, folder)
    suites = tuple(suite for report in reports for suite in report.suites)
    tables = zip(*(tables_of(suite.name) for suite in suites), strict=True)
    with chdir(folder):
        records = [RunRecord.read(path) for path in Path().glob(RECORDS)]
        measurements, summary = (
            pd.concat(map(read, files), ignore_index=True)
            for read, files in zip((read_measurements, read_summary), tables, strict=True)
        )
        write_table(Path(ALL_SUMMARY), summary.to_dict("records"), SUMMARY)
        report = reports[0].model_copy(update={"suites": suites})
        context = gather(report, records, measurements, summary, published=False)
        write_whole(Path(PAGES[0]), render_html(context, Path(FIGURES).parent, "../"))


def take(browser: Browser, page: Path, picture: Path) -> None:
    """Save a report's first screen, in light colours."""
    screen = {"width": WIDTH, "height": 900}
    view = browser.new_page(viewport=screen, device_scale_factor=SCALE, color_scheme="light")
    view.goto(page.resolve().as_uri())
    box = view.locator("#findings").bounding_box()
    height = box["y"] + box["height"] + MARGIN
    view.screenshot(path=picture, clip={"x": 0, "y": 0, "width": WIDTH, "height": height})
    view.close()


def main(root: Path, browser: Browser, sources: Sequence[Path] = ()) -> None:
    """Replace the picture and README's sentence.

    Args:
        root: the checkout.
        sources: the folder where the report was made, or archives of its suites; left out: the
            checkout.
    """
    with TemporaryDirectory() as unpacked:
        folder, what = root, "what `make report` measured"
        if sources:
            folder, what = sources[0], "a report that was made"
        if folder.suffix == ".zip":
            folder = Path(unpacked)
            put_together(sources, folder)
        readme = root / "README.md"
        text, found = CAPTION.subn(caption_of(folder, what), readme.read_text(encoding="utf-8"))
        if not found:
            raise ReperfError(f"{readme}: no sentence in italics below docs/images/report.png")
        take(browser, folder / PAGES[0], root / "docs/images/report.png")
        readme.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    chromium = shutil.which("chromium", path="/usr/bin")
    try:
        with sync_playwright() as play:
            browser = play.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
            root, sources = Path(__file__).resolve().parents[1], [*map(Path, sys.argv[1:])]
            main(root, browser, sources)
    except ReperfError as error:
        sys.exit(f"reperf: {error}")
