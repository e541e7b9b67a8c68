"""Make the embedded images or the embedded text of a data set."""

from pathlib import Path

from reperf.data.kinds import KINDS
from reperf.layout import SET_PLAN
from reperf.plans.set_plan import SetPlan


def run(name: str) -> None:
    plan = SetPlan.read(SET_PLAN.format(set=name))
    KINDS[plan.data.kind].embed(Path("data", name))
