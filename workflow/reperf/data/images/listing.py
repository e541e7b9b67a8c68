"""The images of a folder in ImageNet's layout, held compactly."""

import os
import random
from array import array
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from reperf.data.images.kind import LAYOUT, check_layout
from reperf.errors import ReperfError
from reperf.files import reading

SUFFIXES = (".jpeg", ".jpg")


class Listing:
    """All images of a training set, by class and name; a million take some 40 MB.

    Args:
        images: a folder that holds train/<synset>/*.JPEG.

    Attributes:
        folder: the folder that holds a folder per class.
        classes: synsets in label order, which is their sorted order; labels count from 0.
        images_per_class: in label order.
        ignored: files in class folders without a JPEG's name.

    Raises:
        ReperfError: the folder is missing or holds no images, a class without images, or a name
            that the record formats cannot hold.
    """

    def __init__(self, images: Path) -> None:
        check_layout(images)
        self.folder = images / "train"
        self.classes = sorted(_names(self.folder, os.DirEntry.is_dir))
        self.ignored = 0
        if not self.classes:
            raise ReperfError(f"{self.folder}: holds no images; allowed: {LAYOUT}")
        names = [
            self._names_in(self.folder / _carryable(name, self.folder)) for name in self.classes
        ]
        self.images_per_class = [len(of_class) for of_class in names]
        self._names = np.concatenate(names)
        self._labels = np.repeat(np.arange(len(names), dtype=np.uint32), self.images_per_class)

    def _names_in(self, folder: Path) -> np.ndarray:
        files = list(_names(folder))
        images = sorted(name for name in files if name.lower().endswith(SUFFIXES))
        if not images:
            raise ReperfError(f"{folder}: an empty class; allowed: at least one *.JPEG")
        self.ignored += len(files) - len(images)
        return np.array([_carryable(name, folder).encode() for name in images])

    def __len__(self) -> int:
        return len(self._labels)

    def __getitem__(self, index: int) -> tuple[int, str]:
        """The label and the file name of an image."""
        return int(self._labels[index]), self._names[index].decode()

    def shuffled(self, seed: int) -> "array[int]":
        """The images' indices in an order that depends on the seed alone."""
        order = array("I", range(len(self)))
        random.Random(seed).shuffle(order)
        return order


def _names(folder: Path, wanted: Callable[["os.DirEntry[Any]"], bool] = bool) -> Iterator[str]:
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
