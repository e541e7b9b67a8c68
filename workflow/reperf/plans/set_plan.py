"""The plan of a data set: its part of the configuration."""

from reperf.config import Data
from reperf.plans.plan import Plan


class SetPlan(Plan):
    """plan.json in a data set's folder."""

    data: Data
