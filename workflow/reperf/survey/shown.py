"""What a survey prints and writes: a table, lines, JUnit XML, a page."""

from collections.abc import Iterator
from html import escape
from pathlib import Path
from statistics import median
from xml.etree import ElementTree as ET

from rich.console import Console
from rich.table import Table
from rich.text import Text

from reperf.files import whole_file
from reperf.records.survey_record import SurveyRecord
from reperf.survey.verdicts import FAULTS, NodeVerdict, State, Verdicts, advice, claims, in_words
from reperf.text import count, printable

_STYLES: dict[State, str] = {
    "computes otherwise": "bold red",
    "slow": "bold red",
    "no answer": "yellow",
    "unclear": "yellow",
    "ok": "green",
}
_LEFT, _WIDTH, _ROW = 120, 560, 18
"""Of the page's figure, in pixels: where the axis begins, its length, the height of a row."""


def heading(survey: SurveyRecord, verdicts: Verdicts) -> str:
    """What was done, in a line."""
    nodes = count(len({run.node for run in survey.runs}), "node")
    scatter = verdicts.ruling and f"; runs of a node scatter by {verdicts.ruling.scatter:.2f} %"
    return f"{nodes}, {count(survey.asked, 'run')} each of {survey.cell}{scatter or ''}"


def _rows(verdicts: Verdicts) -> Iterator[tuple[State, str, str]]:
    """State, node and reason; healthy nodes share a row."""
    well = [one for one in verdicts.nodes if one.state == "ok"]
    for one in verdicts.nodes:
        # A node of which a run gave no number has its own row.
        if one not in well or "no number" in one.why:
            yield one.state, one.node, one.why
    same = [one.place.slower for one in well if one.place and "no number" not in one.why]
    if same:
        names = [one.node for one in well if "no number" not in one.why]
        who = ", ".join(names) if len(names) <= 4 else f"{len(names)} nodes"
        span = f"{in_words(min(same))} to {in_words(max(same))}"
        yield "ok", who, f"{span} than the others' median"


def show(survey: SurveyRecord, verdicts: Verdicts, console: Console) -> None:
    """Print the verdicts: in a terminal as a table, else in tab-separated columns."""
    lines = [*claims(survey, verdicts), *advice(survey, verdicts)]
    if not console.is_terminal:
        rows = map("\t".join, _rows(verdicts))
        for line in (heading(survey, verdicts), *rows, *lines):
            print("\t".join(map(printable, line.split("\t"))), file=console.file)
        return
    table = Table(box=None, pad_edge=False, show_header=False)
    for state, node, why in _rows(verdicts):
        table.add_row(Text(state, _STYLES[state]), Text(printable(node)), Text(printable(why)))
    console.print(Text(printable(heading(survey, verdicts))))
    console.print(table)
    for line in lines:
        console.print(Text(printable(line)))


def write_junit(path: Path, survey: SurveyRecord, verdicts: Verdicts) -> None:
    """Write a test case for each node, for CI systems."""
    faults = [one for one in verdicts.nodes if one.state in FAULTS]
    total = {"tests": str(len(verdicts.nodes)), "failures": str(len(faults))}
    suite = ET.Element("testsuite", {"name": f"reperf survey: {printable(survey.cell)}"} | total)
    for one in sorted(verdicts.nodes):
        case = ET.SubElement(suite, "testcase", classname="reperf.survey", name=printable(one.node))
        if one.state in FAULTS:
            ET.SubElement(case, "failure", type=one.state, message=printable(one.why))
        else:
            ET.SubElement(case, "system-out").text = printable(f"{one.state}: {one.why}")
    with whole_file(path) as stream:
        stream.write(ET.tostring(suite, encoding="unicode") + "\n")


def write_page(path: Path, survey: SurveyRecord, verdicts: Verdicts) -> None:
    """Write a page with a row a node and a dot a run, which needs no second file."""
    rows = "".join(
        f"<tr class='{_class_of(one)}'><td>{one.state}<td>{escape(printable(one.node))}"
        f"<td>{escape(printable(one.why))}"
        for one in verdicts.nodes
    )
    lines = "".join(f"<p>{escape(printable(line))}" for line in claims(survey, verdicts))
    typed = "".join(f"<pre>{escape(printable(line))}</pre>" for line in advice(survey, verdicts))
    title = escape(printable(heading(survey, verdicts)))
    with whole_file(path) as stream:
        stream.write(
            "<!doctype html><html lang=en><meta charset=utf-8><title>Survey</title><style>"
            ":root{color-scheme:light dark}body{font:15px system-ui;margin:2em auto;max-width:60em}"
            "td{padding:.1em .8em .1em 0;vertical-align:top}svg{overflow:visible}"
            ".slow,.computes-otherwise{color:#c5221f;fill:#c5221f;font-weight:bold}"
            ".unclear,.no-answer{color:#a56500;fill:#a56500}.ok{fill:#188038}"
            "text{fill:currentColor;font-size:12px}line{stroke:currentColor;opacity:.4}</style>"
            f"<h1>Survey of {survey.made[:10]}</h1><p>{title}{_figure(survey, verdicts)}"
            f"<table>{rows}</table>{lines}{typed}\n"
        )


def _figure(survey: SurveyRecord, verdicts: Verdicts) -> str:
    """Each run's throughput in percent of the median of its round."""
    shares = dict(_shares(survey))
    if not shares:
        return ""
    every = [share for of in shares.values() for share in of]
    low = min(*every, 100 - survey.margin)
    high = max(*every, 100 + survey.margin)
    told: dict[str, NodeVerdict] = {one.node: one for one in verdicts.nodes}

    def at(share: float) -> str:
        return f"{_LEFT + _WIDTH * (share - low) / (high - low):.1f}"

    height = _ROW * (len(shares) + 1)
    marks = (100.0, 100 - survey.margin)
    parts = [
        f"<line x1={at(mark)} x2={at(mark)} y1=0 y2={height - _ROW} />"
        f"<text x={at(mark)} y={height - 4} text-anchor={'start' if mark == 100 else 'end'}>"
        f"{mark:g} %</text>"
        for mark in marks
    ]
    for row, (node, of_node) in enumerate(shares.items()):
        middle = _ROW * row + _ROW / 2
        dots = "".join(f"<circle cx={at(share)} cy={middle} r=3.5 />" for share in of_node)
        name = escape(printable(node))
        parts.append(f"<text x=0 y={middle + 4}>{name}</text>")
        parts.append(f"<g class={_class_of(told[node])}>{dots}</g>")
    size = f"width={_LEFT + _WIDTH + 20} height={height}"
    said = "Throughput of each run, in percent of the median of its round"
    return f"<figure><svg {size}>{''.join(parts)}</svg><figcaption>{said}</figcaption></figure>"


def _class_of(one: NodeVerdict) -> str:
    return one.state.replace(" ", "-")


def _shares(survey: SurveyRecord) -> Iterator[tuple[str, list[float]]]:
    """Each node's runs, in percent of the medians of their rounds."""
    rounds: dict[int, dict[str, float]] = {}
    for run in survey.runs:
        if run.throughput:
            rounds.setdefault(run.round, {})[run.node] = run.throughput
    for node in dict.fromkeys(run.node for run in survey.runs):
        every = rounds.values()
        if own := [100 * one[node] / median(one.values()) for one in every if node in one]:
            yield node, own
