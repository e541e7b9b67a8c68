"""The report as plain Markdown, for repositories and mail: title, tables, warnings and method."""

from typing import Any

from markupsafe import Markup

from reperf.report.context import Context
from reperf.report.html import page_environment
from reperf.text import in_markdown


def render_markdown(context: Context, figures: str) -> str:
    """The document.

    Args:
        figures: where the figures are, relative to the document.
    """
    # Jinja escapes for HTML only; for Markdown, `literal` does.
    environment = page_environment(finalize=literal)
    return environment.get_template("report.md.j2").render(report=context, figures_folder=figures)


def literal(value: Any) -> Any:  # noqa: ANN401 - what a template prints
    """Text that Markdown shows as it is, on one line."""
    if not isinstance(value, str) or isinstance(value, Markup):
        return value
    return in_markdown(value)
