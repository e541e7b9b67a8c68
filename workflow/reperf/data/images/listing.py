"""The images of a folder in ImageNet's layout, held compactly."""

import os
import random
from array import array
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

from reperf.errors import ReperfError
from reperf.files import reading

LAYOUT = "a folder that holds train/<synset>/*.JPEG"
SUFFIXES = (".jpeg", ".jpg")


class Listing:
    """All images of a training set, by class and name.

    A million images take some 40 MB: names lie in one buffer, not in a million objects.

    Attributes:
        folder: the folder that holds a folder per class.
        classes: synsets in label order, which is their sorted order; labels count from 0.
        ignored: files in class folders without a JPEG's name.
    """

    def __init__(self, images: Path) -> None:
        """List a folder.

        Args:
            images: a folder that holds train/<synset>/*.JPEG.

        Raises:
            ReperfError: the folder is missing or holds no images, a class without images, or a
                name that the record formats cannot hold.
        """
        check_layout(images)
        self.folder = images / "train"
        self.classes: list[str] = []
        self.ignored = 0
        self._names = bytearray()
        self._ends = array("Q", [0])
        self._labels = array("I")
        for synset in sorted(_names(self.folder, os.DirEntry.is_dir)):
            self._add_class(synset)
        if not self.classes:
            raise ReperfError(f"{self.folder}: holds no images; allowed: {LAYOUT}")

    def _add_class(self, synset: str) -> None:
        folder = self.folder / _carryable(synset, self.folder)
        files = list(_names(folder))
        images = sorted(name for name in files if name.lower().endswith(SUFFIXES))
        if not images:
            raise ReperfError(f"{folder}: an empty class; allowed: at least one *.JPEG")
        for name in images:
            self._names += _carryable(name, folder).encode()
            self._ends.append(len(self._names))
            self._labels.append(len(self.classes))
        self.ignored += len(files) - len(images)
        self.classes.append(synset)

    def __len__(self) -> int:
        return len(self._labels)

    def __getitem__(self, index: int) -> tuple[int, str]:
        """The label and the file name of an image."""
        name = self._names[self._ends[index] : self._ends[index + 1]]
        return self._labels[index], name.decode()

    def shuffled(self, seed: int) -> array:
        """The images' indices in an order that depends on the seed alone."""
        order = array("I", range(len(self)))
        random.Random(seed).shuffle(order)
        return order

    def images_per_class(self) -> list[int]:
        """The number of images of each class, in label order."""
        counts = Counter(self._labels)
        return [counts[label] for label in range(len(self.classes))]


def check_layout(images: Path) -> None:
    """Refuse a folder that, at a glance, cannot hold a training set.

    Raises:
        ReperfError: there is no such folder, or no train/ in it.
    """
    for folder in (images, images / "train"):
        if not os.path.isdir(folder):  # noqa: PTH112 - pathlib's raises where access is denied
            raise ReperfError(f"{folder}: no such folder; allowed: {LAYOUT}")


def _names(folder: Path, wanted: Callable[[os.DirEntry], bool] = bool) -> Iterator[str]:
    """The names in a folder that are not hidden."""
    with reading(folder), os.scandir(folder) as entries:
        for entry in entries:
            if not entry.name.startswith(".") and wanted(entry):
                yield entry.name


def _carryable(name: str, folder: Path) -> str:
    """The name itself, if every record format can hold it."""
    raw = os.fsencode(name)
    try:
        raw.decode()
    except UnicodeDecodeError:
        raise ReperfError(f"{folder}: file name {raw!r}; allowed: names in UTF-8") from None
    if any(character in name for character in "\t\r\n"):
        raise ReperfError(f"{folder}: file name {raw!r}; allowed: names without tabs or line ends")
    return name
