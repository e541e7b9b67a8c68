"""The one exception that users see: a single line that says what is wrong, and where."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from pathlib import PurePath
from typing import ParamSpec, TypeVar

from reperf.text import printable

_Given = ParamSpec("_Given")
_Found = TypeVar("_Found")


class ReperfError(Exception):
    """Bad input or a result that cannot be given.

    The message is one line that names the file or key, the place, the value and what is
    allowed. The command line and the workflow's scripts print it without a traceback.
    """

    def __init__(self, message: str) -> None:
        # File names and values from outside may hold line breaks and worse.
        super().__init__(printable(message))


@contextmanager
def faults_of(file: PurePath | str) -> Iterator[None]:
    """Name a file in what the block says is wrong: its content is at fault."""
    try:
        yield
    except ReperfError as error:
        raise ReperfError(f"{file}: {error}") from None


@contextmanager
def one_line_errors() -> Iterator[None]:
    """End the process with status 1 and one line where the block raises a ReperfError."""
    try:
        yield
    except ReperfError as error:
        sys.exit(f"reperf: {error}")


def or_end(input_function: Callable[_Given, _Found]) -> Callable[_Given, _Found]:
    """An input function of a rule that ends the call, in one line, where it fails.

    Where an output is there already, Snakemake 9 takes the failure for a rule that does not exist,
    and says that there is nothing to be done.
    """

    @wraps(input_function)
    def look(*args: _Given.args, **others: _Given.kwargs) -> _Found:
        try:
            return input_function(*args, **others)
        except (OSError, ReperfError) as error:
            sys.exit(f"reperf: {error}")

    return look
