"""Convert a data set to the parts of one record format."""

from pathlib import Path

from reperf.data.kinds import KINDS
from reperf.plans.set_plan import read_set


def run(name: str, record_format: str) -> None:
    data = read_set(name)
    folder = Path("data", name, record_format)
    KINDS[data.kind].convert(data, folder, record_format, workers=data.workers)
