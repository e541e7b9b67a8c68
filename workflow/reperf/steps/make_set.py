"""Make the embedded images or the embedded text of a data set."""

from reperf.data.kinds import KINDS
from reperf.layout import SET_PLAN
from reperf.plans.set_plan import SetPlan


def run(name: str) -> None:
    data = SetPlan.read(SET_PLAN.format(set=name)).data
    KINDS[data.kind].embed(data)
