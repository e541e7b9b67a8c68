"""What every workflow script does around its one call."""

import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr
from typing import Any

from reperf.building.keeper import keep_to_workflow
from reperf.building.seals import sealed
from reperf.errors import ReperfError


@contextmanager
def building(job: Any) -> Iterator[None]:  # noqa: ANN401 - Snakemake's own
    """Run a script that builds a part of the report, and seal what it has built.

    Args:
        job: `snakemake`, as scripts get it.
    """
    with script(job.log[0]), sealed(job.output, job.input, dict(job.params.items())):
        yield


@contextmanager
def script(log: str, *, kept: bool = True) -> Iterator[None]:
    """Run a rule's script: its messages go to the rule's log, a ReperfError ends it in one line.

    The script ends, with all processes that it starts, when its workflow does.

    Args:
        log: the rule's log file.
        kept: whether the script must end with the workflow; Slurm ends its jobs itself.
    """
    if kept:
        keep_to_workflow()
    with open(log, "w", encoding="utf-8", buffering=1) as stream, redirect_stderr(stream):  # noqa: PTH123
        try:
            yield
        except ReperfError as error:
            stream.write(f"reperf: {error}\n")
            sys.stderr = sys.__stderr__  # the line is for the caller, too
            sys.exit(f"reperf: {error}")
        except SystemExit:
            stream.write("reperf: told to end\n")
            raise
        except BaseException:
            stream.write(traceback.format_exc())
            raise
