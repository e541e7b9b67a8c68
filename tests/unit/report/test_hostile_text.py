"""Any text in any place of a report: the report keeps its structure and shows the text."""

import re
from dataclasses import replace
from unicodedata import category

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from reperf.report.html import render_html
from reperf.report.markdown import render_markdown
from reperf.tables import MEASUREMENTS, SUMMARY
from reperf.text import printable

from tests.helpers.written_probes import diagnosis
from tests.unit.report.benchmarks import Benchmark, Page

MARKDOWN = MarkdownIt("commonmark").enable(["table", "strikethrough"])
KEYS = ("suite", "topology")
"""Columns by which the report looks things up: a pattern or the configuration decides them."""
MARKS = [
    *("\n", "\r", "\x00", "\x1b[2J", "\u2028", "\u202e", "\udcff", " ", "    ", '"', "'"),
    *("|", "---", "===", "```", "# ", "- ", "+ ", "1. ", "2) ", "> ", "*", "_", "~~", "\\", "$x$"),
    *("<!--", "-->", "<b>", "]]>", "&lt;", "&#10;", "<http://x>", "{{ x }}", "{% x %}"),
    *("[x](javascript:y)", "![x](y)", "[x]: /y"),
]
ANY = st.text(st.characters(exclude_categories=()), max_size=4)
TEXT = st.lists(st.sampled_from(MARKS) | ANY, min_size=1).map("".join)


@pytest.fixture(scope="module")
def few(big_benchmark) -> Benchmark:
    """Two cells of two runs, of which one went wrong."""
    asked = "system == 'oneflow' and topology in ('1n1g', '4n8g')"
    return big_benchmark.but(
        records=big_benchmark.records[:2],
        measurements=big_benchmark.measurements.query(f"{asked} and repeat < 3"),
        summary=big_benchmark.summary.query(asked),
    )


def pages_with(few: Benchmark, text: str) -> tuple[str, str]:
    """The pages with a text in the place of all others that come from outside."""
    tables = {
        name: getattr(few, name).assign(
            **{key: text for key, kind in columns.items() if kind is str and key not in KEYS}
            | {"hosts": "".join(text.split()) or "x"}  # of several, a cell says how many
        )
        for name, columns in (("measurements", MEASUREMENTS), ("summary", SUMMARY))
    }
    # A record is JSON, which holds no lone surrogate; and of blank text a document has no code.
    recorded = text.encode("utf-8", "replace").decode() if text.strip() else "x"
    records = tuple(_record(record, recorded) for record in few.records)
    context = few.but(
        report=few.report.model_copy(update={"title": text}),
        records=records,
        diagnosis=_diagnosis(text),
        **tables,
    ).context
    # A record stands behind each run, though no name leads from the one to the other.
    [suite] = context.suites
    cells = tuple(
        replace(cell, runs=tuple(replace(run, record=records[0]) for run in cell.runs))
        for cell in suite.cells
    )
    context = replace(context, records=records, suites=(replace(suite, cells=cells),))
    return render_html(context, few.figures), render_markdown(context, "figures")


def _record(record, text: str):
    environment = {"lock": text, "lock_sha256": text, "python": text, "packages": {text: text}}
    host = dict.fromkeys(("hostname", "cpu", "os", "kernel", "driver", "cuda"), text)
    host["gpus"] = (record.host.gpus[0].model_copy(update={"name": text, "uuid": text}),)
    host["topology_matrix"] = f"a\tb\n{printable(text)}\n"
    return record.model_copy(
        update={
            **dict.fromkeys(("reason", "git_commit", "started", "ended"), text),
            "command": (text, text),
            "environment": record.environment.model_copy(update=environment),
            "host": record.host.model_copy(update=host),
        }
    )


def _diagnosis(text: str):
    ill = diagnosis()
    said = {"check": text, "what": text, "advice": text, "nodes": (text,)}
    findings = tuple(one.model_copy(update=said) for one in ill.findings[:3])
    trial = ill.trials[0].model_copy(update={"name": text, "library": text, "devices": (text,)})
    named = {"profile": text, "made": text, "findings": findings, "trials": (trial,)}
    return ill.model_copy(update=named)


def structure(pages: tuple[str, str]) -> tuple[list, list]:
    """What parsers see: a page's elements, a document's blocks and what is in them beside words."""
    html, markdown = pages
    return [tag for tag, _ in Page(html).elements], [
        (token.type, token.tag, [one.type for one in token.children or () if one.type != "text"])
        for token in MARKDOWN.parse(markdown)
    ]


@pytest.fixture(scope="module")
def harmless(few) -> tuple[list, list]:
    return structure(pages_with(few, "x"))


@settings(max_examples=6, suppress_health_check=list(HealthCheck))
@given(text=TEXT.filter(str.strip))
@example(text="a\n| forged | row |\n\n# heading\n")
@example(text="\x1b]8;;http://x\x07<img src=x onerror=alert(1)>\u202e")
@example(text='" onmouseover="alert(1)')
@example(text="--- ")
@example(text="1. one")
@example(text="\u00a0")
def test_no_text_changes_the_structure_of_a_report(few, harmless, text):
    pages = pages_with(few, text)
    assert structure(pages) == harmless
    for page in pages:
        odd = {category(char) for char in page if char not in "\n\t"}
        assert odd.isdisjoint({"Cc", "Cf", "Cs", "Zl", "Zp"})
        page.encode()
    assert " ".join(printable(text).split()) in Page(pages[0]).text


def test_no_link_of_a_report_leads_where_a_text_says(few):
    for _, attributes in Page(pages_with(few, "javascript:alert(1)")[0]).elements:
        allowed = ("#", "data:", "results/runs/", "published.html", "README.txt", "check.csv")
        assert attributes.get("href", "#").startswith(allowed)
    named = pages_with(few, "see https://x.example or www.x.example")[1]
    beside_code = re.sub(r"(?s)```.*?```|`.*?`", "", named)
    assert not re.search(r"https://|www\.", beside_code)
