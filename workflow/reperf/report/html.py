"""The report as one HTML file that needs no network, no script and no second file.

A small script of its own sorts and filters tables, and compares with any system in place of the
fastest, where scripts may run.
"""

import re
from collections import defaultdict
from collections.abc import Callable
from inspect import getmembers, isfunction
from itertools import product
from pathlib import Path
from typing import Any
from zlib import crc32

import pandas as pd
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from reperf import __version__, number_format
from reperf.drawing.palette import GRID, INK, MUTED, PAPER
from reperf.layout import PUBLISHED_KINDS
from reperf.logs.facts import called
from reperf.measuring.comparison_output import Compared
from reperf.measuring.history import History
from reperf.measuring.statistics import rank_of_bound
from reperf.published import discrepancies, load_tables
from reperf.report.change_views import HEIGHT, ComparisonView, LineView
from reperf.report.context import Context
from reperf.text import printable, printable_lines

# The names under which style.css defines each colour for light and for dark.
THEME = {INK: "var(--ink)", MUTED: "var(--muted)", GRID: "var(--line)", PAPER: "var(--paper)"}
STYLE, SCRIPT = (Path(__file__).with_name(name) for name in ("style.css", "page.js"))


def render_html(
    context: Context, figures: Path, root: str = "", compared: Compared | None = None
) -> str:
    """The page.

    Args:
        figures: folder of the figures, as the workflow writes them.
        root: what leads from the page to the folder in which the paths of logs begin: "" or
            "../".
    """
    bounds = {
        f"{ours},{theirs}": rank_of_bound(ours, theirs)[0]
        for panel in (panel for suite in context.suites for panel in suite.panels)
        for ours, theirs in product({len(one.cell.throughputs) for one in panel.ranked}, repeat=2)
    }
    view = compared and ComparisonView(compared)
    given = {"report": context, "root": root, "bounds": bounds, "compared": view}
    return render_page("report.html.j2", figures, **given)


def render_published(figures: Path) -> str:
    """The page of published reports, whose figures lie below published/, and of what disagrees."""
    by_kind = defaultdict(list)
    for discrepancy in discrepancies():
        by_kind[discrepancy.kind].append(discrepancy)
    return render_page("published.html.j2", figures, tables=load_tables(), discrepancies=by_kind)


def render_comparison(compared: Compared) -> str:
    """The page of a comparison: a row for each cell, its change around zero."""
    return render_page("comparison.html.j2", compared=ComparisonView(compared))


def render_history(folder: str, history: History) -> str:
    """The page of cells over time."""
    return render_page(
        "history.html.j2",
        folder=folder,
        lines=[LineView(line) for line in history.lines],
        left_out=history.left_out,
        height=HEIGHT,
    )


def render_page(template: str, figures: Path = Path(), **given: Any) -> str:  # noqa: ANN401
    """A page by its template, in the style of all pages.

    Args:
        figures: folder of the figures that the template draws.
    """
    environment = page_environment(block, finalize=_shown, autoescape=True)
    return environment.get_template(template).render(
        **given,
        style=Markup(STYLE.read_text(encoding="utf-8")),
        script=Markup(SCRIPT.read_text(encoding="utf-8")),
        drawing=lambda stem, label: inline_svg(figures / f"{stem}.svg", stem, label),
    )


def page_environment(
    *filters: Callable[..., object], finalize: Callable[[Any], Any], autoescape: bool = False
) -> Environment:
    """The environment that finds and fills in templates; an undefined name is an error.

    Args:
        filters: of this form, beside all functions of reperf.number_format; each by its own name.
    """
    environment = Environment(
        loader=PackageLoader("reperf.report"),
        autoescape=autoescape,
        finalize=finalize,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= dict(getmembers(number_format, isfunction))
    environment.filters |= {function.__name__: function for function in (called, *filters)}
    environment.tests["given"] = pd.notna
    environment.globals |= {"published_kinds": PUBLISHED_KINDS, "version": __version__}
    return environment


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
        name: makes the ids unique among the page's figures.
        label: what the figure shows, for those who cannot see it.
    """
    # Not ElementTree: it would rewrite every tag of the page's figures to replace a few words.
    text = path.read_text(encoding="utf-8")
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    # A fifth of matplotlib's bytes are digits and names that no screen shows.
    text = re.sub(r"\s*\n\s*", " ", re.sub(r"([1-9]\d*\.\d\d)\d+", r"\1", text))
    text, prefix = text.replace("DejaVuSans-", "g"), f"f{crc32(name.encode()):x}"
    text = re.sub(r'( id="|href="#|url\(#)', rf"\g<1>{prefix}-", text)
    for colour, variable in THEME.items():
        text = text.replace(colour, variable)
    opening, rest = text.split(">", 1)
    opening = re.sub(r' (width|height|version|xmlns)="[^"]*"', "", opening)
    return Markup('{} role="img" aria-label="{}">{}').format(
        Markup(opening), printable(label), Markup(rest)
    )
