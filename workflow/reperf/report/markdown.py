"""The report as Markdown, for repositories and mail: the same facts as in HTML."""

import re
from typing import Any

from markupsafe import Markup

from reperf.report.context import Context
from reperf.report.pages import page_environment
from reperf.text import printable, printable_lines

# What Markdown reads as markup: anywhere; at the beginning of a list, a rule or a heading; and what
# many renderers turn into links.
SPECIAL = re.compile(r"([\\`*_\[\]<>|#~$]|&(?=[#\w]+;)|^[-+=]|:(?=//)|(?<=\bwww)\.)", re.IGNORECASE)
NUMBERED = re.compile(r"^(\d{1,9})(?=[.)]( |$))")


def render_markdown(context: Context, figures: str) -> str:
    """The document.

    Args:
        context: what to report.
        figures: where the figures are, relative to the document.
    """
    # Jinja escapes for HTML only; for Markdown, `_literal` does.
    environment = page_environment(block, code, finalize=_literal)
    return environment.get_template("report.md.j2").render(report=context, figures_folder=figures)


def code(value: object) -> Markup:
    """Text in a code span."""
    text = _one_line(str(value)).replace("|", "\\|")
    if not text:
        return Markup("")
    fence = _fence(text, least=1)
    pad = " " if "`" in text else ""
    return Markup(f"{fence}{pad}{text}{pad}{fence}")


def block(text: str) -> Markup:
    """Lines as a block of code."""
    fence = _fence(text, least=3)
    return Markup("\n".join([fence, printable_lines(text).strip("\n"), fence]))


def _fence(text: str, least: int) -> str:
    """So many backticks that none in the text can end the code."""
    return "`" * max(least, 1 + max(map(len, re.findall("`+", text)), default=0))


def _literal(value: Any) -> Any:  # noqa: ANN401 - what a template prints
    """Text that Markdown shows as it is, on one line."""
    if not isinstance(value, str) or isinstance(value, Markup):
        return value
    return NUMBERED.sub(r"\1\\", SPECIAL.sub(r"\\\1", _one_line(value)))


def _one_line(text: str) -> str:
    """The text on one line, with single spaces: to Markdown, others are structure."""
    return " ".join(printable(text).split())
