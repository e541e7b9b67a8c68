"""Whether what lies in a run's folder is the run that is planned today."""

import json
from pathlib import Path

from reperf.builds import build_of
from reperf.builds.built import digest_now
from reperf.errors import ReperfError
from reperf.layout import PLAN, RUN_RECORD
from reperf.plans.run_plan import RunPlan
from reperf.training.record import LARGEST_RECORD


def why_not_current(
    plan: RunPlan, batch_size: int | None, data: str | None, folder: Path | str = ""
) -> str | None:
    """Why the record of a run is not of a plan.

    This is asked for every run before anything starts, so it reads no more than it needs. Records
    that are edited or none at all are left to measuring, which refuses them.

    Args:
        plan: today's.
        batch_size: the one that was found, if the plan leaves it open; None: not found yet.
        data: SHA-256 of the manifest of the data set; None: there is no set, or not yet.
        folder: of one of the run's tries, or the run's own, which it is if left out.

    Returns:
        One line, "" if it is of the plan, None if there is no record.
    """
    record = f"{folder or plan.run.folder}/{RUN_RECORD}"
    try:
        with open(record, "rb") as stream:  # noqa: PTH123 - pathlib is slow
            text = stream.read(LARGEST_RECORD + 1)
        if len(text) > LARGEST_RECORD:
            return ""
        content = json.loads(text)
        made_by, size = content.get("plan", ""), content["run"]["batch_size"]
        read, image = content.get("data_sha256"), content["environment"].get("image")
        trained_in = image and image["digest"]
    except FileNotFoundError:
        return None
    except (OSError, ValueError, LookupError, AttributeError, TypeError, RecursionError):
        return ""
    if made_by != plan.digest:
        return f"{record}: {_difference(plan, made_by)}"
    if plan.batch and size != batch_size:
        return f"{record}: batch_size is {size} by the run record, {batch_size or 'not'} found"
    found_now = {
        "image": (trained_in, digest_now(build_of(plan.run))),
        "data set": (read, data),
    }
    changed = [what for what, (then, now) in found_now.items() if then and now and then != now]
    return f"{record}: the {changed[0]} has changed since" if changed else ""


def _difference(plan: RunPlan, made_by: str) -> str:
    """Where the plan of a record and today's differ, if the record's lies beside it."""
    run = plan.run.folder
    for path in (run / PLAN, *sorted(run.glob(f"tries/*/{PLAN}"), reverse=True)):
        try:
            old = RunPlan.read(path)
        except ReperfError:
            continue
        if old.digest == made_by:
            return plan.differences(old)
    return "is of another plan"
