"""The keys of sets of images."""

from typing import ClassVar

from pydantic import Field

from reperf.config.words import PlainPath
from reperf.data.keys import KindKeys


class Keys(KindKeys):
    """Of images."""

    embedded: ClassVar[str] = "images"
    holds_folders: ClassVar[bool] = True

    images: PlainPath | None = Field(
        None,
        description="folder that holds train/<synset>/*.JPEG; left out, the embedded set is made",
    )
