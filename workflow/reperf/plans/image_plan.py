"""The plan of an image: which one, what runs it, and where it is pulled."""

from functools import cached_property
from pathlib import Path
from typing import Literal, Self

from pydantic import Field

from reperf.builds import ImageBuild
from reperf.config import Cluster, Container
from reperf.config.words import Model
from reperf.faults import checked
from reperf.systems import load_systems
from reperf.written import read_written


class ImagePlan(Model):
    """plan.json in an image's folder."""

    plan_version: Literal[1] = 1
    system: str = Field(description="for which the image is")
    container: Container
    cluster: Cluster | None = Field(description="on which it is pulled, if the engine is there")

    @cached_property
    def text(self) -> str:
        """The file's content."""
        return self.model_dump_json(indent=1) + "\n"

    @property
    def build(self) -> ImageBuild:
        """What is made."""
        return ImageBuild(load_systems()[self.system], self.container)

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read a plan.

        Raises:
            ReperfError: the file is missing, or is no plan.
        """
        return checked(cls, read_written(path), path)
