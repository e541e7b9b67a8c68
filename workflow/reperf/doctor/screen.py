"""What the doctor prints: a table for people, lines for pipes."""

from rich.console import Console
from rich.table import Table
from rich.text import Text

from reperf.records.diagnosis import Diagnosis, Level
from reperf.text import printable

STYLES: dict[Level, str] = {
    "ok": "green",
    "warning": "yellow",
    "error": "bold red",
    "not there": "dim",
}


def show(diagnosis: Diagnosis, console: Console) -> None:
    """Print the findings: in a terminal as a table, else one per line in tab-separated columns."""
    if console.is_terminal:
        console.print(_table(diagnosis))
        return
    for finding in diagnosis.findings:
        columns = [finding.level, finding.check, diagnosis.place(finding), finding.what]
        line = "\t".join(map(printable, [*columns, finding.advice]))
        print(line.rstrip(), file=console.file)


def _table(diagnosis: Diagnosis) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    for heading in ("", "check", "where", "what was found"):
        table.add_column(heading, overflow="fold", no_wrap=heading == "")
    former = None
    for finding in diagnosis.findings:
        style = STYLES[finding.level]
        what = _plain(finding.what, style="dim" if finding.level == "not there" else "")
        if finding.advice:
            what.append(f"\n{printable(finding.advice)}", style="italic")
        # A check is named once, in the first of its rows.
        check = "" if finding.check == former else finding.check
        former = finding.check
        place = _plain(diagnosis.place(finding))
        table.add_row(_plain(finding.level, style), _plain(check), place, what)
    return table


def _plain(text: str, style: str = "") -> Text:
    """Text in which rich sees no markup."""
    return Text(printable(text), style)
