"""What a suite measures: apart from its plan, because only measuring needs the code of all logs."""

from reperf.layout import RUN_FILES
from reperf.measuring.found_logs import files_of
from reperf.plans.suite_plan import SuitePlan


def measured_by(plan: SuitePlan) -> list[str]:
    """The plan of a suite, its logs and records, and the logs of others with their records."""
    own = (f"{folder}/{name}" for folder in plan.plans for name in RUN_FILES)
    of_others = (str(file) for one in plan.suite.sources for file in files_of(one.path))
    return [*plan.files, *own, *of_others]
