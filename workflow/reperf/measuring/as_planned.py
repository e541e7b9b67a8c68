"""Whether a log of ours prints what its run prints: no iteration less, and none more.

The plan is what the run record beside the log says, and the log's own `configuration` event.
"""

import sys
from itertools import pairwise
from math import inf

from trainers.contract.steplog import printed_iterations

from reperf.logs.facts import TOGETHER, Facts, Refused
from reperf.logs.logged_runs import LoggedRun


def check_as_planned(run: LoggedRun, facts: Facts) -> None:
    """Check the lines of a run against its labels and its plan, as far as somebody says it.

    Behind the window, lines may be missing where they were not read.

    Raises:
        Refused: a line is not one that the run prints, or one is missing; or another run begins
            between two lines.
    """
    if run.unlabelled is not None:
        raise Refused(
            f"the line of iteration {run.unlabelled.iteration} carries no rank's label, and lines "
            "before it do: nothing says which rank wrote it"
        )
    if facts.get("unconfigured"):
        raise Refused(
            "the log names its framework, and not its configuration: a line of it is lost"
        )
    if excuse := facts.get("gave_up"):
        raise Refused(f"the log says that the run ended well, and before that: {excuse}")
    lines = run.first_epoch
    for record in lines:
        if record.fault:
            raise Refused(record.fault)
    for before, after in pairwise(lines):
        if before.batch is None or after.batch is None:
            continue
        counted = after.iteration - before.iteration
        if counted > 0 and after.batch - before.batch != counted:
            raise Refused(
                f"iteration {before.iteration} is batch {before.batch} and iteration "
                f"{after.iteration} batch {after.batch} by their epochs: the counts disagree"
            )
    if run.begun_again is not None:
        raise Refused(
            "the log says that a run starts before iteration "
            f"{run.begun_again.iteration}; allowed: once, before iteration "
            f"{run.first_epoch[0].iteration}"
        )
    iterations, every = facts.get("iterations"), facts.get("print_every")
    if iterations and every:
        _check_printed(run, int(iterations), int(every), facts)


def _check_printed(run: LoggedRun, iterations: int, every: int, facts: Facts) -> None:
    planned = printed_iterations(iterations, every)
    teller = facts.tellers()["print_every"]
    allowed = f"allowed by {teller}: each {every} of {iterations} iterations"
    last = planned[-1] if planned else 0
    trains_on = facts.get(TOGETHER) == "on"  # until the last rank has come as far
    if trains_on:
        planned, allowed = printed_iterations(sys.maxsize, every), allowed + " and further ones"
    allowed += ", once"
    lines = run.first_epoch
    assert run.newest
    for record in (*lines, run.newest):
        if record.iteration not in planned:
            raise Refused(f"iteration {record.iteration} is printed; {allowed}")
    before = 0
    for place, record in enumerate(lines):
        iteration, due = record.iteration, before + every
        if record.evaluations:
            raise Refused(
                f"the log tells of an evaluation before iteration {iteration}; allowed in a run of "
                "reperf's: none"
            )
        if iteration < due:
            raise Refused(f"iteration {iteration} is printed behind {before}; {allowed}")
        unread = record.evaluated == inf and place >= len(run.records)
        if iteration > due and not unread:
            raise Refused(f"iteration {due} is not printed; {allowed}")
        before = iteration
    if run.ends and last:
        ended = run.ends[0].iteration
        if ended < last or (ended > last and not trains_on):
            raise Refused(f"the log says that the run ended at iteration {ended}; {allowed}")
