"""Container images in place of locks, and the engine that runs them."""

from typing import Literal, get_args

from pydantic import Field

from reperf.config.words import Text, Texts
from reperf.faults import Model

EngineName = Literal["apptainer", "podman", "docker", "pyxis"]
ENGINES: tuple[EngineName, ...] = get_args(EngineName)
"""In the order in which they are preferred where several are there."""


class Engine(Model):
    """What runs container images."""

    engine: EngineName | None = Field(
        None, description="left out: the first of these that this machine has"
    )
    options: Texts = Field((), description="further options for the engine's `run` or `exec`")


class Container(Model):
    """The container that a run trains in, with everything that decides it."""

    engine: EngineName
    image: Text = Field(description="a reference into a registry, or a file or folder")
    options: Texts = ()

    def __str__(self) -> str:
        """As a message names it."""
        return " ".join((self.image, "in", self.engine, *self.options))
