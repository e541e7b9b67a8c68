"""Whether a log of ours prints what its run prints: no iteration less, and none more.

The plan is what the run record beside the log says, and the log's own `configuration` event.
"""

import sys
from itertools import pairwise
from math import inf

from trainers.contract.steplog import printed_iterations

from reperf.logs.checks import Refused
from reperf.logs.facts import Facts
from reperf.logs.logged_runs import LoggedRun


def check_complete(run: LoggedRun, facts: Facts) -> None:
    """Check the lines of a run against its labels and its plan, as far as these are known.

    After the window, lines may be missing where they were not read.

    Raises:
        Refused: a line is not one that the run prints, or one is missing; or another run begins
            between two lines.
    """
    if run.unlabelled is not None:
        raise Refused(
            "mixed-ranks",
            f"the line of iteration {run.unlabelled.iteration} carries no rank's label, and lines "
            "before it do: nothing says which rank wrote it",
        )
    if why := _contradicts_itself(run, facts):
        raise Refused("plan", why)
    iterations, every = facts.get("iterations"), facts.get("print_every")
    if iterations and every and (why := _not_as_planned(run, int(iterations), int(every), facts)):
        by = facts.tellers()["print_every"]
        more = " and further ones" if facts.get("together") else ""
        raise Refused(
            "plan", f"{why}; allowed by {by}: each {every} of {iterations} iterations{more}, once"
        )


def _contradicts_itself(run: LoggedRun, facts: Facts) -> str:
    """What a log says of itself that cannot be; empty if nothing."""
    if facts.get("unconfigured"):
        return "the log names its framework, and not its configuration: a line of it is lost"
    if excuse := facts.get("gave_up"):
        return f"the log says that the run ended well, and before that: {excuse}"
    lines = run.first_epoch
    if fault := next((record.fault for record in lines if record.fault), ""):
        return fault
    for before, after in pairwise(lines):
        if before.batch is None or after.batch is None:
            continue
        counted = after.iteration - before.iteration
        if counted > 0 and after.batch - before.batch != counted:
            return (
                f"iteration {before.iteration} is batch {before.batch} and iteration "
                f"{after.iteration} batch {after.batch} by their epochs: the counts disagree"
            )
    if again := run.begun_again:
        return (
            f"the log says that a run starts before iteration {again.iteration}; allowed: once, "
            f"before iteration {lines[0].iteration}"
        )
    return ""


def _not_as_planned(run: LoggedRun, iterations: int, every: int, facts: Facts) -> str:
    """In what the lines of a run are not those of its plan; empty if they are."""
    planned = printed_iterations(iterations, every)
    last = planned[-1] if planned else 0
    trains_on = facts.get("together")  # until the last rank has come as far
    if trains_on:
        planned = printed_iterations(sys.maxsize, every)
    lines, newest = run.first_epoch, run.newest
    for record in (*lines, newest):
        if record and record.iteration not in planned:
            return f"iteration {record.iteration} is printed"
    before = 0
    for place, record in enumerate(lines):
        iteration, due = record.iteration, before + every
        if record.evaluations:
            return f"the log shows an evaluation before iteration {iteration}"
        if iteration < due:
            return f"iteration {iteration} is printed after {before}"
        unread = record.evaluated == inf and place >= len(run.records)
        if iteration > due and not unread:
            return f"iteration {due} is not printed"
        before = iteration
    ended = run.ends[0].iteration if run.ends else last
    if last and (ended < last or (ended > last and not trains_on)):
        return f"the log says that the run ended at iteration {ended}"
    return ""
