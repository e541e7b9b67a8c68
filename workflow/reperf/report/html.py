"""The report as one HTML file that needs no network, no script and no second file.

A small script of its own sorts and filters tables, and compares with any system in place of the
fastest, where scripts may run.
"""

import re
from collections.abc import Callable
from functools import cache
from inspect import getmembers, isfunction
from itertools import count, product
from pathlib import Path
from typing import Any

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
LETTER = "DejaVuSans"  # how matplotlib begins the names of letters' outlines
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
        f"{n},{m}": rank_of_bound(n, m)[0]
        for panel in (panel for suite in context.suites for panel in suite.panels)
        for n, m in product({len(one.cell.throughputs) for one in panel.ranked}, repeat=2)
    }
    view = compared and ComparisonView(compared)
    given = {"report": context, "root": root, "bounds": bounds, "compared": view}
    return render_page("report.html.j2", figures, **given)


def render_published(figures: Path) -> str:
    """The page of published reports, whose figures lie below published/, and of what disagrees."""
    given = {"tables": load_tables(), "discrepancies": discrepancies()}
    return render_page("published.html.j2", figures, **given)


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
    letters: set[str] = set()
    prefixes = map("f{}".format, count())

    def drawing(stem: str, label: str) -> Markup:
        return inline_svg(figures / f"{stem}.svg", next(prefixes), label, letters)

    return environment.get_template(template).render(
        **given,
        style=Markup(STYLE.read_text(encoding="utf-8")),
        script=Markup(SCRIPT.read_text(encoding="utf-8")),
        drawing=drawing,
    )


@cache
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


def inline_svg(path: Path, prefix: str, label: str, letters: set[str]) -> Markup:
    """A figure of ours as part of a page, in the page's colours and without what no reader sees.

    Half of matplotlib's bytes are names that nothing refers to, digits that no screen shows, and
    repeated outlines of letters: a page needs each letter once.

    Args:
        prefix: makes the ids unique among the page's figures.
        label: what the figure shows, for those who cannot see it.
        letters: those whose outlines the page has; this figure's are added.
    """
    # Not ElementTree: it would rewrite every tag of the page's figures to replace a few words.
    text = path.read_text(encoding="utf-8")
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>|<!--.*?-->", "", text, flags=re.DOTALL)
    text = re.sub(r"\s*\n\s*", " ", re.sub(r"([1-9]\d*\.\d)\d+", r"\1", text))
    text = re.sub(r"(?<=[:;]) (?=[^<>]*>)|(?<=>) (?=<)", "", text)
    text = re.sub(r'"#(\S+)" transform="translate\(([-.\d]+) 0\)"', r'"#\1" x="\2"', text)
    referred = {*re.findall(r'(?:href="|url\()#([^")]+)', text)}

    def letter(path: re.Match[str]) -> str:
        new = path[1] not in letters
        letters.add(path[1])
        return path[0] if new else ""

    def group(points: re.Match[str]) -> str:
        styles = {*re.findall(r' style="[^"]*"', points[2])}
        style = styles.pop() if len(styles) == 1 else ""
        return f"{points[1]}{style}>{points[2].replace(style, '')}</g>"

    def named(name: re.Match[str]) -> str:
        attribute = name[0] if name[1].startswith(LETTER) else f' id="{prefix}-{name[1]}"'
        return attribute if name[1] in referred else ""

    text = re.sub(rf'<path id="({LETTER}[^"]*)"[^>]*>', letter, text).replace("<defs></defs>", "")
    text = re.sub(r' id="([^"]*)"', named, text)
    text = re.sub(rf'(href="#|url\(#)(?!{LETTER})', rf"\g<1>{prefix}-", text)
    text = re.sub(r'(<g clip-path="[^"]*")>((?:<use [^>]* style="[^"]*"/>)+)</g>', group, text)
    text = text.replace("xlink:href", "href").replace(LETTER, "g")
    for colour, variable in THEME.items():
        text = text.replace(colour, variable)
    opening, rest = text.split(">", 1)
    opening = re.sub(r' (width|height|version|xmlns(:\w+)?)="[^"]*"', "", opening)
    return Markup('{} role="img" aria-label="{}">{}').format(
        Markup(opening), printable(label), Markup(rest)
    )
