"""The report as one HTML file that needs no network, no script and no second file.

A small script of its own sorts and filters tables, and shows and hides the series of figures, where
scripts may run.
"""

import re
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from markupsafe import Markup

from reperf.drawing.figures import SERIES
from reperf.drawing.palette import GRID, INK, MUTED, PAPER
from reperf.report.context import Context
from reperf.report.pages import page_environment
from reperf.text import printable, printable_lines

# The names under which style.css defines each colour for light and for dark.
THEME = {INK: "var(--ink)", MUTED: "var(--muted)", GRID: "var(--line)", PAPER: "var(--paper)"}
STYLE, SCRIPT = (Path(__file__).with_name(name) for name in ("style.css", "page.js"))


def render_html(context: Context, figures: Path, root: str = "") -> str:
    """The page.

    Args:
        context: what to report.
        figures: folder of the figures, as the workflow writes them.
        root: what leads from the page to the folder in which the paths of logs begin: "" or
            "../".
    """
    environment = page_environment(block, finalize=_shown, autoescape=True)
    return environment.get_template("report.html.j2").render(
        report=context,
        root=root,
        style=Markup(STYLE.read_text(encoding="utf-8")),
        script=Markup(SCRIPT.read_text(encoding="utf-8")),
        drawing=lambda stem, label: inline_svg(figures / f"{stem}.svg", stem, label),
    )


def block(text: str) -> Markup:
    """Lines for a <pre>."""
    return Markup("{}").format(printable_lines(text))


def _shown(value: Any) -> Any:  # noqa: ANN401 - what a template prints
    """Text with only such characters as a page may hold."""
    plain = isinstance(value, str) and not isinstance(value, Markup)
    return printable(value) if plain else value


def inline_svg(path: Path, name: str, label: str) -> Markup:
    """A figure of ours as part of a page, in the page's colours.

    Args:
        path: the SVG file that reperf.drawing.figures wrote.
        name: makes the ids unique among the page's figures.
        label: what the figure shows, for those who cannot see it.
    """
    # Not ElementTree: it would rewrite every tag of the page's figures to replace a few words.
    text = path.read_text(encoding="utf-8")
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(rf' id="{SERIES}/([^/"]*)/[^"]*"', _names_series, text)
    prefix = re.sub(r"\W", "-", name)
    text = re.sub(r'( id="|href="#|url\(#)', rf"\g<1>{prefix}-", text)
    for colour, variable in THEME.items():
        text = text.replace(colour, variable)
    opening, rest = text.split(">", 1)
    opening = re.sub(r' (width|height|version|xmlns)="[^"]*"', "", opening)
    return Markup('{} role="img" aria-label="{}">{}').format(
        Markup(opening), printable(label), Markup(rest)
    )


def _names_series(series: re.Match[str]) -> str:
    """The attribute by which the page's script finds the parts of a series."""
    return Markup(' data-series="{}"').format(unquote(series[1]))
