"""Measure logs, check archives, examine machines and plan reports: all but the runs themselves."""

import argparse
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout, suppress
from typing import NoReturn, TextIO, TypeVar

from reperf import __version__
from reperf.errors import ReperfError
from reperf.nearest import did_you_mean
from reperf.text import printable

INTERRUPTED = 130
"""Exit status after Ctrl-C: the one a shell gives a program that SIGINT ended."""
WRONG_ARGUMENTS = 2
"""Exit status after arguments that no command takes: argparse's."""
NOBODY_READS = 141
"""Exit status when `head` and the like have read enough: the one a shell gives after SIGPIPE."""

Done = TypeVar("Done")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command.

    Returns:
        The exit status: 0 success, 1 a ReperfError, WRONG_ARGUMENTS, INTERRUPTED, NOBODY_READS, or
        the command's own.
    """
    try:
        with _output():
            return _run(arguments)
    except ReperfError as error:
        with suppress(OSError):  # there is nobody left to tell
            print(f"reperf: {error}", file=sys.stderr)
        return 1
    except ModuleNotFoundError as error:
        if str(error.name).startswith("reperf"):
            raise
        print(
            f"reperf: {error.name} is not installed; install reperf[report], which draws, writes "
            "pages and checks archives, or reperf[workflow], which also runs benchmarks",
            file=sys.stderr,
        )
        return 1
    except _NobodyReads:
        return NOBODY_READS
    except KeyboardInterrupt:
        return INTERRUPTED


def _run(arguments: Sequence[str] | None) -> int:
    # Some import libraries for half a second, when Ctrl-C must be as quiet as later.
    from reperf.commands import archive, config, doctor, latex, measure, plan, runs  # noqa: PLC0415

    parser = _Parser(prog="reperf", description=__doc__)
    parser.add_argument("--version", action="version", version=f"reperf {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    # Each adds one command: its parser, with `run` set to a function that takes the parsed options
    # and returns an exit status. What a command needs is imported when it runs.
    for command in (archive, config, doctor, latex, measure, plan, runs):
        command.add(commands)
    options, unknown = parser.parse_known_args(arguments)
    called = commands.choices.get(options.command, parser)
    if unknown:
        called.error(f"unrecognized arguments: {' '.join(unknown)}{called.meant_by(unknown[0])}")
    if called is parser:
        parser.error(f"COMMAND: is missing; allowed: {', '.join(commands.choices)}")
    return options.run(options)


class _Parser(argparse.ArgumentParser):
    """A parser, like those of its commands, that complains in one printable line."""

    def error(self, message: str) -> NoReturn:
        message = message.removeprefix("argument ")
        self.exit(WRONG_ARGUMENTS, f"{self.prog}: {printable(message)} (see {self.prog} --help)\n")

    def meant_by(self, word: str) -> str:
        """The end of a complaint of an argument that is not known."""
        known = self._option_string_actions
        if "--configfile" in known and not word.startswith("-"):
            return f"; did you mean --configfile {word}?"
        return did_you_mean(word, known)

    def _check_value(self, action: argparse.Action, value: object) -> None:
        if action.choices is not None and value not in action.choices:
            known = list(map(str, action.choices))
            allowed = f"allowed: {', '.join(known)}{did_you_mean(value, known)}"
            raise argparse.ArgumentError(action, f"got {value!r}; {allowed}")


class _NobodyReads(Exception):
    """Standard output is a pipe, and its reader has gone."""


class _Output:
    """Standard output that takes any character, and tells its own faults from other files'."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        encoding = self._stream.encoding or "utf-8"
        # Characters that the terminal's encoding lacks are shown escaped.
        known = text.encode(encoding, "backslashreplace").decode(encoding)
        return self._do(self._stream.write, known)

    def flush(self) -> None:
        self._do(self._stream.flush)

    def __getattr__(self, name: str) -> object:
        return getattr(self._stream, name)

    def _do(self, act: Callable[..., Done], *arguments: str) -> Done:
        try:
            return act(*arguments)
        except OSError as error:
            # Python would write the rest of the buffer at its end, and complain.
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self._stream.fileno())
            os.close(nowhere)
            if isinstance(error, BrokenPipeError):
                raise _NobodyReads from None
            raise ReperfError(f"standard output: cannot be written: {error.strerror}") from None


@contextmanager
def _output() -> Iterator[None]:
    """Send all that the block prints through _Output, to the last character."""
    if sys.stderr is None:  # closed by the caller; print() would take standard output instead
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115
    if sys.stdout is None:
        raise ReperfError("standard output: is closed; allowed: a terminal, a file or a pipe")
    output = _Output(sys.stdout)
    with redirect_stdout(output):
        try:
            yield
        finally:
            output.flush()
