"""The log formats: all that the modules of this package define."""

import pkgutil
from functools import cache
from importlib import import_module

from reperf.errors import ReperfError
from reperf.logs.format import Format
from reperf.suggestions import did_you_mean

PROGRAMS = {
    "hugectr": "hugectr",
    "jax": "levanter maxtext",
    "mindspore": "mindspore",
    "paddle": "fleetx",
    "tensorflow": "tensorflow1",
    "torch": "build-nanogpt composer deepspeed detectron2 facebook-dlrm huggingface lightning litgpt "
    "megatron maskrcnn-benchmark nanochat nanogpt nanotron nemo olmo olmo-core openmmlab pipedream "
    "torchtitan yolov7",
}
"""Framework -> the programs that run on it and are no systems of reperf; those of any are left out."""


@cache
def formats() -> dict[str, Format]:
    """Every format, by name."""
    modules = (import_module(f"{__name__}.{file.name}") for file in pkgutil.iter_modules(__path__))
    found = {
        value.name: value
        for module in modules
        for value in vars(module).values()
        if isinstance(value, Format)
    }
    return dict(sorted(found.items()))


def format_called(name: str) -> Format:
    """The format of this name.

    Raises:
        ReperfError: no format has this name.
    """
    if name not in formats():
        meant = did_you_mean(name, formats())
        raise ReperfError(
            f"unknown log format {name!r}; allowed: {', '.join(formats())}, as "
            f"docs/log-formats.md shows them{meant}"
        )
    return formats()[name]
