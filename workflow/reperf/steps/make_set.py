"""Make the embedded images or the embedded text of a data set."""

from pathlib import Path

from reperf.data.kinds import KINDS
from reperf.plans.set_plan import read_set


def run(name: str) -> None:
    KINDS[read_set(name).kind].embed(Path("data", name))
