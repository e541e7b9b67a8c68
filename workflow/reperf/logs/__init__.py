"""The log formats, one module each: a module here that defines FORMAT is a format."""

import pkgutil
from functools import cache
from importlib import import_module

from reperf.logs.format import Format


@cache
def formats() -> dict[str, Format]:
    """Every format, by its name."""
    modules = (
        import_module(f"{__name__}.{found.name}") for found in pkgutil.iter_modules(__path__)
    )
    found = [module.FORMAT for module in modules if hasattr(module, "FORMAT")]
    return {log_format.name: log_format for log_format in sorted(found, key=lambda one: one.name)}
