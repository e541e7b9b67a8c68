"""The log formats: every module here that defines FORMAT is one; one that defines FORMATS, several."""

import pkgutil
from functools import cache
from importlib import import_module

from reperf.errors import ReperfError
from reperf.logs.format import Format
from reperf.nearest import did_you_mean


@cache
def formats() -> dict[str, Format]:
    """Every format, by name."""
    modules = (
        import_module(f"{__name__}.{found.name}") for found in pkgutil.iter_modules(__path__)
    )
    found = [
        log_format
        for module in modules
        for log_format in getattr(module, "FORMATS", None) or [getattr(module, "FORMAT", None)]
        if log_format
    ]
    return {log_format.name: log_format for log_format in sorted(found, key=lambda one: one.name)}


def format_called(name: str) -> Format:
    """The format of this name.

    Raises:
        ReperfError: there is none.
    """
    if name not in formats():
        meant = did_you_mean(name, formats())
        raise ReperfError(
            f"unknown log format {name!r}; allowed: {', '.join(formats())}, as "
            f"docs/log-formats.md shows them{meant}"
        )
    return formats()[name]
