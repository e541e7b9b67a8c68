"""What a record format must define."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, NamedTuple, TypeVar

Item = TypeVar("Item")


class Written(NamedTuple):
    """What lies in a part that is whole."""

    name: str
    records: int
    bytes: int
    crc32c: str  # of the file, 8 hexadecimal digits


def _nothing(_: Path, __: Sequence[Written]) -> None:
    pass


@dataclass(frozen=True)
class Format(Generic[Item]):
    """How the items of a part, such as images, are written.

    Attributes:
        frame: the pieces of an item's record. Joined, they are the record; they are kept apart so
            that what is large, such as an image, is never copied. Raises ValueError for an item
            that the format cannot hold.
        suffix: of the part's name.
        sidecars: suffix of a file beside the part -> its line for an item, given the item and the
            offset and size of its record in bytes.
        finish: writes the files that cover all parts, given their folder and the parts.
    """

    frame: Callable[[Item], list[bytes]]
    suffix: str = ""
    sidecars: Mapping[str, Callable[[Item, int, int], str]] = field(default_factory=dict)
    finish: Callable[[Path, Sequence[Written]], None] = _nothing
