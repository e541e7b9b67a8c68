"""The plan of an image: which one, what runs it, and where it is pulled."""

from pydantic import Field

from reperf.builds import ImageBuild
from reperf.config import Cluster, Container
from reperf.plans.plan import Plan
from reperf.systems import load_systems


class ImagePlan(Plan):
    """plan.json in an image's folder."""

    system: str = Field(description="for which the image is")
    container: Container
    cluster: Cluster | None = Field(description="on which it is pulled, if the engine is there")

    @property
    def build(self) -> ImageBuild:
        """What is made."""
        return ImageBuild(load_systems()[self.system], self.container)
