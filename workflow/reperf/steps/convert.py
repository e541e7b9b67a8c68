"""Convert a data set to the parts of one record format."""

from pathlib import Path

from reperf.data.kinds import KINDS
from reperf.layout import SET_PLAN
from reperf.plans.set_plan import SetPlan


def run(name: str, record_format: str) -> None:
    data = SetPlan.read(SET_PLAN.format(set=name)).data
    folder = Path("data", name, record_format)
    KINDS[data.kind].convert(data, folder, record_format, workers=data.workers)
