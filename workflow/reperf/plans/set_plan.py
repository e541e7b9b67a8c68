"""The plan of a data set: its part of the configuration."""

from pathlib import Path

from reperf.config import Data
from reperf.errors import ReperfError
from reperf.layout import SET_PLAN


def read_set(name: str) -> Data:
    """Read the plan of a data set.

    Raises:
        ReperfError: the file is missing, or is no plan.
    """
    path = SET_PLAN.format(set=name)
    try:
        return Data.model_validate_json(Path(path).read_bytes())
    except (OSError, ValueError) as error:
        raise ReperfError(f"{path}: not a plan: {str(error).splitlines()[0]}") from None
