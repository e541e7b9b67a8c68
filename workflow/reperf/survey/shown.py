"""What a survey prints and writes: a table, lines, JUnit XML, a page."""

from collections import defaultdict
from collections.abc import Iterator
from itertools import chain
from statistics import median

from rich.console import Console
from rich.table import Table
from rich.text import Text

from reperf.junit import Case, junit
from reperf.records.survey_record import SurveyedRun, SurveyRecord
from reperf.report.html import render_page
from reperf.report.scale import Scale
from reperf.survey.verdicts import FAULTS, State, Verdicts, advice, claims, in_words
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


def as_junit(survey: SurveyRecord, verdicts: Verdicts) -> str:
    """JUnit XML, with a test case for each node."""
    cases = (
        Case("nodes", one.node, "failure" if one.state in FAULTS else "", f"{one.state}: {one.why}")
        for one in sorted(verdicts.nodes)
    )
    return junit(f"reperf survey: {survey.cell}", cases, heading(survey, verdicts))


def as_page(survey: SurveyRecord, verdicts: Verdicts) -> str:
    """A page with a row a node and a dot a run."""
    margin = 1 - survey.margin / 100
    shares = defaultdict[str, list[float]](list)
    rounds = defaultdict[int, list[SurveyedRun]](list)
    for run in survey.runs:
        rounds[run.round].append(run)
    for runs in rounds.values():
        known = {run.node: run.throughput for run in runs if run.throughput}
        for node, throughput in known.items():
            shares[node].append(throughput / median(known.values()))
    return render_page(
        "survey.html.j2",
        survey=survey,
        heading=heading(survey, verdicts),
        nodes=verdicts.nodes,
        claims=claims(survey, verdicts),
        advice=advice(survey, verdicts),
        shares=shares,
        margin=margin,
        scale=Scale.of([margin, *chain.from_iterable(shares.values())]),
    )
