"""What every step of the workflow does around its one call."""

import sys
import traceback
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, redirect_stderr
from pathlib import Path

from reperf.building.process_guard import start_guard
from reperf.errors import ReperfError


@contextmanager
def script(log: Path | str | None, *, guarded: bool = True) -> Iterator[None]:
    """Run a step: its messages go to its log or standard error, a ReperfError ends it in a line.

    If `guarded`, it ends, with all that it starts, when its workflow does; Slurm ends its jobs.
    """
    if guarded:
        start_guard()
    with ExitStack() as stack:
        if log is not None:
            Path(log).parent.mkdir(parents=True, exist_ok=True)
            stream = stack.enter_context(Path(log).open("w", encoding="utf-8", buffering=1))
            stack.enter_context(redirect_stderr(stream))
        try:
            yield
        except ReperfError as error:
            if log is not None:
                print(f"reperf: {error}", file=sys.stderr)
            sys.exit(f"reperf: {error}")  # the line is for the caller, too
        except SystemExit:
            print("reperf: told to end", file=sys.stderr)
            raise
        except BaseException:
            traceback.print_exc()
            raise
