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

    The message is one line that names the file or key, the place, the value and what is allowed.
    The command line and the workflow's scripts print it without a traceback.
    """

    status = 1  # the exit status of the command line

    def __init__(self, message: str) -> None:
        # File names and values from outside may hold line breaks and worse.
        super().__init__(printable(message))


@contextmanager
def faults_of(file: PurePath | str) -> Iterator[None]:
    """Put a file's name in front of errors that the block raises about its content."""
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
    """Wrap a rule's input function, so that its failure ends the call with one line.

    Snakemake 9 would take the failure for a missing rule, and say that nothing is to be done.
    """

    @wraps(input_function)
    def look(*args: _Given.args, **others: _Given.kwargs) -> _Found:
        try:
            return input_function(*args, **others)
        except (OSError, ReperfError) as error:
            sys.exit(f"reperf: {error}")

    return look
