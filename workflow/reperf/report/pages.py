"""The Jinja environment of both forms of the report: templates, filters and globals."""

from collections.abc import Callable
from inspect import getmembers, isfunction
from typing import Any

import pandas as pd
from jinja2 import Environment, PackageLoader, StrictUndefined

from reperf import __version__, number_format
from reperf.layout import PUBLISHED_KINDS
from reperf.logs.facts import called


def page_environment(
    *filters: Callable[..., object], finalize: Callable[[Any], Any], autoescape: bool = False
) -> Environment:
    """The environment that finds and fills in templates; an undefined name is an error.

    Args:
        filters: of this form, beside all functions of reperf.number_format; each by its own name.
        finalize: makes what an expression gives fit for the page.
        autoescape: whether to escape for HTML.
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
