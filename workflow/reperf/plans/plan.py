"""What all plans share: how they are written, and how they are read."""

import json
from functools import cached_property
from pathlib import Path
from typing import Literal, Self

from reperf.config.words import Model
from reperf.errors import ReperfError
from reperf.faults import checked


class Plan(Model):
    """A file, mostly plan.json, that decides something that is made."""

    plan_version: Literal[1] = 1

    @cached_property
    def text(self) -> str:
        """The file's content."""
        return self.model_dump_json(by_alias=True, indent=1) + "\n"

    @classmethod
    def read(cls, path: Path | str) -> Self:
        """Read a plan.

        Raises:
            ReperfError: the file is missing, or is no plan.
        """
        try:
            return checked(cls, json.loads(Path(path).read_bytes()), f"{path}: not a plan")
        except (OSError, ValueError, RecursionError) as error:
            fault = getattr(error, "strerror", None) or str(error)
        raise ReperfError(f"{path}: not a plan: {fault}")
