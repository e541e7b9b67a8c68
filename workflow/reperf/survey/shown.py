"""What a survey prints and writes: a table, lines, JUnit XML, a page."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import chain
from statistics import median

from rich.console import Console
from rich.table import Table
from rich.text import Text

from reperf.junit import Case, junit
from reperf.records.survey_record import SurveyedRun, SurveyRecord
from reperf.report.html import render_page
from reperf.report.scale import Scale
from reperf.survey.verdicts import (
    FAULTS,
    NodeVerdict,
    State,
    Verdicts,
    advice,
    claims,
    in_words,
)
from reperf.text import count, printable

_STYLES: dict[State, str] = {
    "computes otherwise": "bold red",
    "slow": "bold red",
    "no answer": "yellow",
    "unclear": "yellow",
    "ok": "green",
}


def heading(survey: SurveyRecord, verdicts: Verdicts) -> str:
    """What was done, in a line."""
    nodes = count(len({run.node for run in survey.runs}), "node")
    scatter = verdicts.ruling and f"; runs of a node scatter by {verdicts.ruling.scatter:.2f} %"
    pairs = len({run.node for run in survey.pairs})
    links = f"; and of {survey.pair_cell} on {count(pairs, 'pair')}" if pairs else ""
    return f"{nodes}, {count(survey.asked, 'run')} each of {survey.cell}{links}{scatter or ''}"


def _rows(verdicts: Verdicts) -> Iterator[tuple[State, str, str]]:
    """State, node or link, and reason."""
    yield from _rows_of(verdicts.nodes, "node")
    yield from _rows_of(verdicts.links, "link")


def _rows_of(verdicts: Sequence[NodeVerdict], what: str) -> Iterator[tuple[State, str, str]]:
    """A row for each node or link, and one that all healthy ones share."""
    # A node or link with a run that gave no number has its own row.
    healthy = [each for each in verdicts if each.state == "ok" and "no number" not in each.why]
    for verdict in verdicts:
        if verdict not in healthy:
            yield verdict.state, verdict.node, verdict.why
    same = [verdict.place.slower for verdict in healthy if verdict.place]
    if same:
        names = [verdict.node for verdict in healthy]
        which = ", ".join(names) if len(names) <= 4 else count(len(names), what)
        others = "the others'" if what == "node" else "the other links'"
        # Of the others, most may be slow.
        most = f"at most {in_words(max(same))}" if max(same) >= 0 else "faster"
        yield "ok", which, f"{most} than {others} median"


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


def as_junit(survey: SurveyRecord, verdicts: Verdicts) -> str:
    """JUnit XML, with a test case for each node and each link."""
    cases = (
        Case(
            what, each.node, "failure" if each.state in FAULTS else "", f"{each.state}: {each.why}"
        )
        for what, judged in (("nodes", verdicts.nodes), ("links", verdicts.links))
        for each in sorted(judged)
    )
    return junit(f"reperf survey: {survey.cell}", cases, heading(survey, verdicts))


def as_page(survey: SurveyRecord, verdicts: Verdicts) -> str:
    """A page with a row for each node or link, and a dot for each run."""
    margin = 1 - survey.margin / 100
    shares = defaultdict[str, list[float]](list)
    rounds = defaultdict[tuple[bool, int], list[SurveyedRun]](list)
    for run in (*survey.runs, *survey.pairs):
        rounds["+" in run.node, run.round].append(run)
    for runs in rounds.values():
        known = {run.node: run.throughput for run in runs if run.throughput}
        for node, throughput in known.items():
            shares[node].append(throughput / median(known.values()))
    return render_page(
        "survey.html.j2",
        survey=survey,
        heading=heading(survey, verdicts),
        places_of=[
            ("Nodes", verdicts.nodes),
            *([("Links", verdicts.links)] if survey.pairs else []),
        ],
        claims=claims(survey, verdicts),
        advice=advice(survey, verdicts),
        shares=shares,
        margin=margin,
        scale=Scale.of([margin, *chain.from_iterable(shares.values())]),
    )
