"""Images: the embedded set, and how a folder of images becomes records."""

import hashlib
import io
import json
import os
import random
import shutil
from array import array
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image as pillow
from PIL import ImageChops, ImageOps

from reperf.data.conversion import Conversion, Counts, PartWriter
from reperf.data.images import LAYOUT, Images
from reperf.data.images.formats import FORMATS
from reperf.data.images.image import Image, read_image
from reperf.errors import ReperfError
from reperf.files import reading, whole_file, write_whole

# The ImageNet class closest to each photograph.
PHOTOGRAPHS = {
    "n02123045": "chelsea.jpg",  # tabby
    "n03763968": "grace_hopper.jpg",  # military uniform
    "n03920288": "ihc.jpg",  # Petri dish
    "n03956157": "hubble_deep_field.jpg",  # planetarium
    "n04266014": "astronaut.jpg",  # space shuttle
    "n04326547": "gravel.jpg",  # stone wall
    "n04485082": "camera.jpg",  # tripod
    "n07920052": "coffee.jpg",  # espresso
}
FOLDER = Path(__file__).with_name("photographs")
SIZES = [(500, 375)] * 3 + [(500, 333), (375, 500)]  # width, height
QUALITY = 96
GRAIN = range(3, 10)  # standard deviation, in steps of 255
SUFFIXES = (".jpeg", ".jpg")


def conversion(settings: Images, format_name: str, _workers: int) -> Conversion[Image]:
    """Convert images to records. They are shuffled by the seed and dealt out evenly."""
    listing, parts = Listing(settings.source), settings.parts
    if parts > len(listing):
        raise ReperfError(
            f"{listing.folder}: {len(listing)} images for {parts} parts; "
            "allowed: at least one image per part"
        )
    order = listing.shuffled(settings.seed)

    def fill(part: int, records: PartWriter[Image]) -> Counts:
        first, end = (len(order) * edge // parts for edge in (part, part + 1))
        reencoded = []
        for index in order[first:end]:
            label, name = listing[index]
            synset = listing.classes[label]
            path = f"{listing.folder}/{synset}/{name}"
            image = read_image(path, label, synset, name, index)
            try:
                records.append(image)
            except ValueError as error:
                raise ReperfError(f"{path}: {error}") from None
            if image.reencoded:
                reencoded.append(f"{synset}/{name}")
        return {"images": end - first, "reencoded": reencoded}

    fields = {
        "images": None,  # these two stand before the classes
        "bytes": None,
        "classes": listing.classes,
        "images_per_class": listing.images_per_class,
        "reencoded": None,
        "ignored": listing.ignored,
    }
    return Conversion(FORMATS[format_name], fill, fields=fields)


class Listing:
    """All images of a training set, by class and name; a million take some 40 MB.

    Args:
        images: a folder that holds train/<synset>/*.JPEG.

    Attributes:
        classes: synsets in label order, which is their sorted order; labels count from 0.
        images_per_class: in label order.
        ignored: files in class folders without a JPEG's name.
    """

    def __init__(self, images: Path) -> None:
        self.folder = images / "train"
        self.classes = sorted(_names(self.folder, os.DirEntry.is_dir))
        self.ignored = 0
        if not self.classes:
            raise ReperfError(f"{self.folder}: holds no images; allowed: {LAYOUT}")
        names = list(map(self._names_in, self.classes))
        self.images_per_class = [len(of_class) for of_class in names]
        self._names = np.concatenate(names)
        self._labels = np.repeat(np.arange(len(names), dtype=np.uint32), self.images_per_class)

    def _names_in(self, synset: str) -> npt.NDArray[np.bytes_]:
        _check_name(synset, self.folder)
        folder = self.folder / synset
        files = list(_names(folder))
        images = sorted(name for name in files if name.lower().endswith(SUFFIXES))
        if not images:
            raise ReperfError(f"{folder}: an empty class; allowed: at least one *.JPEG")
        for name in images:
            _check_name(name, folder)
        self.ignored += len(files) - len(images)
        return np.array([name.encode() for name in images])

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
    with reading(folder), os.scandir(folder) as entries:
        for entry in entries:
            if not entry.name.startswith(".") and wanted(entry):
                yield entry.name


def _check_name(name: str, folder: Path) -> None:
    """Refuse a name that not every record format can hold."""
    raw = os.fsencode(name)
    if any(character in name for character in "\t\r\n"):
        raise ReperfError(f"{folder}: file name {raw!r}; allowed: names without tabs or line ends")
    try:
        raw.decode()
    except UnicodeDecodeError:
        raise ReperfError(f"{folder}: file name {raw!r}; allowed: names in UTF-8") from None


def make(folder: Path, images_per_class: int = 32) -> None:
    """Make the embedded set: ImageNet's layout, sizes and entropy, from a few photographs.

    Each class is a photograph, whose source photographs/README.md names, and each of its images a
    random crop, scaled to one of ImageNet's usual sizes, perhaps mirrored, with film grain. The
    grain replaces the detail that an enlarged crop lacks, so that a file is as large, and as slow
    to decode, as one of ImageNet's: 110 kB at 500x375. The bytes depend only on the photographs and
    the version of Pillow. An earlier set in the folder is replaced.
    """
    train, partial = folder / "train", folder / ".train.partial"
    (folder / "manifest.json").unlink(missing_ok=True)
    for stale in (train, partial):
        shutil.rmtree(stale, ignore_errors=True)
    sizes = []
    digest = hashlib.sha256()
    for synset, source in PHOTOGRAPHS.items():
        with pillow.open(FOLDER / source) as opened:
            photograph = opened.convert("RGB")
        for number in range(images_per_class):
            name = f"{synset}_{number}.JPEG"
            image = _encoded(_view(photograph, random.Random(name)))
            write_whole(partial / synset / name, image, durable=False)
            sizes.append(len(image))
            digest.update(image)
    partial.rename(train)
    with whole_file(folder / "manifest.json") as stream:
        made = {
            "images": len(sizes),
            "bytes": sum(sizes),
            "classes": sorted(PHOTOGRAPHS),
            "photographs": PHOTOGRAPHS,
            "versions": {"pillow": version("pillow")},
            "sha256": digest.hexdigest(),
        }
        json.dump(made, stream, indent=1)
        stream.write("\n")


def _encoded(image: pillow.Image) -> bytes:
    stream = io.BytesIO()
    image.save(stream, "JPEG", quality=QUALITY)
    return stream.getvalue()


def _view(photograph: pillow.Image, chance: random.Random) -> pillow.Image:
    width, height = chance.choice(SIZES)
    largest = min(photograph.width / width, photograph.height / height)
    scale = largest * chance.uniform(0.4, 1) ** 0.5
    left = chance.uniform(0, photograph.width - scale * width)
    top = chance.uniform(0, photograph.height - scale * height)
    box = (left, top, left + scale * width, top + scale * height)
    view = photograph.resize((width, height), pillow.Resampling.LANCZOS, box)
    if chance.random() < 0.5:
        view = ImageOps.mirror(view)
    # Normal noise: random bytes, each mapped to its quantile of a normal distribution around 128.
    noise = NormalDist(128, chance.choice(GRAIN))
    quantiles = bytes(round(noise.inv_cdf((byte + 0.5) / 256)) for byte in range(256))
    grain = chance.randbytes(3 * width * height).translate(quantiles)
    return ImageChops.add(view, pillow.frombytes("RGB", view.size, grain), offset=-128)
