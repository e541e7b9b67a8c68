"""Measure logs, check archives, examine machines, estimate costs: all but the runs themselves."""

import argparse
import errno
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from io import TextIOWrapper
from typing import Any, NoReturn

from reperf import __version__
from reperf.commands import COMMANDS
from reperf.errors import ReperfError
from reperf.suggestions import did_you_mean
from reperf.text import printable

INTERRUPTED = 130  # exit status after Ctrl-C: the one a shell gives a program that SIGINT ended
WRONG_ARGUMENTS = 2  # exit status after arguments that no command takes: argparse's
MEANT = {action: f"archive {action}" for action in ("verify", "rebuild", "sign")} | {
    "plan": "estimate",
    "latex": "export --format latex",
}  # what people type -> the command that does it
NOBODY_READS = 141
"""Exit status when `head` and the like have read enough: the one a shell gives after SIGPIPE."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit status, 1 after a ReperfError, or one of those above."""
    if sys.stderr is None:  # closed by the caller; print() would take standard output instead
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115
    status = 1
    try:
        return _run_and_flush(arguments)
    except ReperfError as error:
        message, status = str(error), error.status
    except ModuleNotFoundError as error:
        if str(error.name).startswith("reperf"):
            raise
        message = (
            f"{error.name} is not installed; install reperf[report], which draws, writes pages and "
            "rebuilds archives, or reperf[workflow], which also runs benchmarks"
        )
    except OSError as error:
        # No other file raises these without its name: it is standard output that takes no more.
        if error.filename is not None or error.errno not in (errno.EPIPE, errno.ENOSPC):
            raise
        # Python would write the rest of the buffer at its end, and complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if error.errno == errno.EPIPE:
            return NOBODY_READS
        message = f"standard output: cannot be written: {error.strerror}"
    except KeyboardInterrupt:
        return INTERRUPTED
    with suppress(OSError):  # there is nobody left to tell
        print(f"reperf: {message}", file=sys.stderr)
    return status


def _run_and_flush(arguments: Sequence[str] | None) -> int:
    if sys.stdout is None:
        raise ReperfError("standard output: is closed; allowed: a terminal, a file or a pipe")
    if isinstance(sys.stdout, TextIOWrapper):
        # Characters that the terminal's encoding lacks are shown escaped.
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        return _run(arguments)
    finally:
        sys.stdout.flush()


def _run(arguments: Sequence[str] | None) -> int:
    words = sys.argv[1:] if arguments is None else arguments
    called = next((word for word in words if not word.startswith("-")), None)
    parser = _Parser(prog="reperf", description=__doc__)
    parser.add_argument("--version", action="version", version=f"reperf {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    for name, purpose in COMMANDS.items():
        command = commands.add_parser(name, help=purpose)
        if name == called:  # the others' libraries would take a second
            import_module(f"reperf.commands.{name}").add(command)
    options, unknown = parser.parse_known_args(arguments)
    parsed_by = commands.choices.get(options.command, parser)
    if unknown:
        meant = parsed_by.meant_by(unknown[0])
        parsed_by.error(f"unrecognized arguments: {' '.join(unknown)}{meant}")
    if parsed_by is parser:
        parser.error(f"COMMAND: is missing; allowed: {', '.join(commands.choices)}")
    try:
        return options.run(options)
    except ReperfError as error:
        error.status = getattr(options, "status_of_faults", error.status)
        raise


class _Parser(argparse.ArgumentParser):
    """A parser, like those of its commands, that complains in one printable line."""

    def _print_message(self, message: str, file: Any = None) -> None:  # noqa: ANN401
        # argparse would hide that standard output takes no more.
        print(message, end="") if file is sys.stdout else super()._print_message(message, file)

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
            meant = f"; did you mean {MEANT[value]}?" if value in MEANT else ""
            allowed = f"allowed: {', '.join(known)}{meant or did_you_mean(value, known)}"
            raise argparse.ArgumentError(action, f"got {value!r}; {allowed}")
