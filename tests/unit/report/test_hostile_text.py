"""Any text in any place of a report: the report keeps its structure and shows the text."""

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from unicodedata import category

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from reperf.doctor.diagnosis import Diagnosis
from reperf.layout import FIGURE_KINDS
from reperf.report.context import Context, gather
from reperf.report.html import render_html
from reperf.report.markdown import render_markdown
from reperf.tables import MEASUREMENTS, SUMMARY
from reperf.text import printable

from tests.unit.report.test_diagnosis import diagnosis_of_an_ill_node
from tests.unit.report.test_html import Page

MARKDOWN = MarkdownIt("commonmark").enable(["table", "strikethrough"])
KEYS = ("suite", "topology")
"""Columns by which the report looks things up: a pattern or the configuration decides them."""
MARKS = st.sampled_from(
    [
        *("\n", "\r", "\x00", "\x1b[2J", "\u2028", "\u202e", "\udcff", " ", "    ", '"', "'"),
        *(
            "|",
            "---",
            "===",
            "```",
            "# ",
            "- ",
            "+ ",
            "1. ",
            "2) ",
            "> ",
            "*",
            "_",
            "~~",
            "\\",
            "$x$",
        ),
        *("<!--", "-->", "<b>", "]]>", "&lt;", "&#10;", "<http://x>", "{{ x }}", "{% x %}"),
        *("[x](javascript:y)", "![x](y)", "[x]: /y"),
    ]
)
TEXT = st.lists(MARKS | st.text(st.characters(exclude_categories=()), max_size=4), min_size=1)
HARMLESS = "x"
NO_DISCREPANCIES = {"speedup": [], "value": [], "median": [], "label": []}


def told(benchmark, text: str) -> Context:
    """The benchmark with a text in the place of all others that come from outside."""
    tables = []
    for whole, columns in ((benchmark.measurements, MEASUREMENTS), (benchmark.summary, SUMMARY)):
        table = whole[whole["system"] == "oneflow"].copy()
        tables.append(table)
        for name, kind in columns.items():
            if kind is str and name not in KEYS:
                table[name] = text
    context = gather(
        benchmark.report.model_copy(update={"title": text}),
        (_record(record, text) for record in benchmark.records[:9]),
        *tables,
        _diagnosis(text),
    )
    suites = tuple(
        replace(suite, cells=tuple(_with_records(suite.cells, context.records)))
        for suite in context.suites
    )
    # What was published is reperf's own text, and long.
    return replace(context, suites=suites, published=(), discrepancies=NO_DISCREPANCIES)


def _record(record, text: str):
    environment = {"lock": text, "lock_sha256": text, "python": text, "packages": {text: text}}
    host = dict.fromkeys(("hostname", "cpu", "os", "kernel", "driver", "cuda"), text)
    gpu = record.host.gpus[0].model_copy(update={"name": text, "uuid": text})
    return record.model_copy(
        update={
            "reason": text,
            "command": (text, text),
            "environment": record.environment.model_copy(update=environment),
            "host": record.host.model_copy(
                update=host | {"gpus": (gpu,), "topology_matrix": f"a\tb\n{printable(text)}\n"}
            ),
            "git_commit": text,
            "started": text,
            "ended": text,
        }
    )


def _with_records(cells, records) -> Iterator:
    """The cells with a record behind each run, though no name leads from the one to the other."""
    for cell in cells:
        runs = (replace(run, record=records[0] if records else None) for run in cell.runs)
        yield replace(cell, runs=tuple(runs))


def _diagnosis(text: str) -> Diagnosis:
    ill = diagnosis_of_an_ill_node()
    findings = tuple(
        one.model_copy(update={"check": text, "what": text, "advice": text, "nodes": (text,)})
        for one in ill.findings[:3]
    )
    said = {"name": text, "library": text, "devices": (text,)}
    trials = (ill.trials[0].model_copy(update=said),)
    return ill.model_copy(
        update={"profile": text, "made": text, "findings": findings, "trials": trials}
    )


def elements(html: str) -> list[str]:
    return [tag for tag, _ in Page(html).elements]


def blocks(markdown: str) -> list[tuple[str, str, list[str]]]:
    """The structure that a Markdown parser sees: blocks, and what stands in them beside words."""
    return [
        (token.type, token.tag, [one.type for one in token.children or () if one.type != "text"])
        for token in MARKDOWN.parse(markdown)
    ]


@pytest.fixture(scope="module")
def figures(tmp_path_factory) -> Path:
    """Small figures: the words in real ones are for test_figures.py."""
    folder = tmp_path_factory.mktemp("figures")
    for kind in FIGURE_KINDS:
        (folder / f"resnet50-fp32-{kind}.svg").write_text("<svg width='1'></svg>")
    return folder


@pytest.fixture(scope="module")
def harmless(big_benchmark, figures) -> tuple[list, list]:
    context = told(big_benchmark, HARMLESS)
    html = elements(render_html(context, figures))
    return html, blocks(render_markdown(context, "figures"))


@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
@given(text=TEXT.map("".join).filter(lambda text: text.strip()))
@example(text="a\n| forged | row |\n\n# heading\n")
@example(text="\x1b]8;;http://x\x07<img src=x onerror=alert(1)>\u202e")
@example(text='" onmouseover="alert(1)')
@example(text="--- ")
@example(text="1. one")
@example(text="\u00a0")
def test_no_text_changes_the_structure_of_a_report(big_benchmark, harmless, figures, text):
    context = told(big_benchmark, text)
    html = render_html(context, figures)
    markdown = render_markdown(context, "figures")
    assert elements(html) == harmless[0]
    assert blocks(markdown) == harmless[1]
    for page in (html, markdown):
        odd = {category(char) for char in page if char not in "\n\t"}
        assert odd.isdisjoint({"Cc", "Cf", "Cs", "Zl", "Zp"})
        page.encode()
    assert " ".join(printable(text).split()) in Page(html).text


def test_no_link_of_a_report_leads_where_a_text_says(big_benchmark, figures):
    context = told(big_benchmark, "javascript:alert(1)")
    for _, attributes in Page(render_html(context, figures)).elements:
        assert attributes.get("href", "#").startswith(("#", "data:,", "results/runs/"))
    named = render_markdown(
        told(big_benchmark, "see https://x.example or www.x.example"), "figures"
    )
    assert not re.search(r"https://|www\.", named)
