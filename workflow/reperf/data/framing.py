"""What a record format must define."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from reperf.data.image import Image
from reperf.data.manifest import Part


def _nothing(_: Path, __: Sequence[Part]) -> None:
    pass


@dataclass(frozen=True)
class Format:
    """How the images of a part are written.

    Attributes:
        frame: the pieces of an image's record. Joined, they are the record; they are kept apart so
            that the image itself, by far the largest of them, is never copied. Raises ValueError
            for an image that the format cannot hold.
        suffix: of the part's name.
        sidecars: suffix of a file beside the part -> its line for an image, given the image and
            the offset and size of its record in bytes.
        finish: writes the files that cover all parts, given their folder and the parts.
    """

    frame: Callable[[Image], list[bytes]]
    suffix: str = ""
    sidecars: Mapping[str, Callable[[Image, int, int], str]] = field(default_factory=dict)
    finish: Callable[[Path, Sequence[Part]], None] = _nothing
