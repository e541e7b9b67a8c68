"""The embedded image set: ImageNet's layout, sizes and entropy, from photographs in our packages.

Each class is a photograph that scikit-image or matplotlib ships, and each of its images a random
crop, scaled to one of ImageNet's usual sizes, perhaps mirrored, with film grain. The grain replaces
the detail that an enlarged crop lacks, so that a file is as large, and as slow to decode, as one of
ImageNet's: 110 kB at 500x375.
"""

import hashlib
import io
import json
import random
import shutil
from importlib.metadata import version
from pathlib import Path
from statistics import NormalDist

import matplotlib
import skimage
from PIL import Image, ImageChops, ImageOps

from reperf.files import whole_file

# The ImageNet class closest to each photograph.
PHOTOGRAPHS = {
    "n02123045": "skimage/chelsea.png",  # tabby
    "n03763968": "matplotlib/grace_hopper.jpg",  # military uniform
    "n03785016": "skimage/motorcycle_left.png",  # moped
    "n03920288": "skimage/ihc.png",  # Petri dish
    "n03956157": "skimage/hubble_deep_field.jpg",  # planetarium
    "n04266014": "skimage/rocket.jpg",  # space shuttle
    "n04326547": "skimage/gravel.png",  # stone wall
    "n07920052": "skimage/coffee.png",  # espresso
}
FOLDERS = {
    "skimage": Path(skimage.__file__).parent / "data",
    "matplotlib": Path(matplotlib.get_data_path()) / "sample_data",
}
SIZES = [(500, 375)] * 3 + [(500, 333), (375, 500)]  # width, height
QUALITY = 96
GRAIN = range(3, 10)  # standard deviation, in steps of 255


def make_images(folder: Path, images_per_class: int = 32) -> None:
    """Make train/<synset>/*.JPEG and manifest.json in a folder, in place of an earlier set there.

    The bytes depend only on the versions of Pillow and of the packages that ship the photographs.

    Raises:
        ReperfError: a file cannot be written.
    """
    train, partial = folder / "train", folder / ".train.partial"
    (folder / "manifest.json").unlink(missing_ok=True)
    for stale in (train, partial):
        shutil.rmtree(stale, ignore_errors=True)
    sizes = []
    digest = hashlib.sha256()
    for synset, place in PHOTOGRAPHS.items():
        package, name = place.split("/")
        with Image.open(FOLDERS[package] / name) as opened:
            photograph = opened.convert("RGB")
        for number in range(images_per_class):
            name = f"{synset}_{number}.JPEG"
            image = _encoded(_view(photograph, random.Random(name)))
            with whole_file(partial / synset / name, "wb", durable=False) as stream:
                stream.write(image)
            sizes.append(len(image))
            digest.update(image)
    partial.rename(train)
    with whole_file(folder / "manifest.json") as stream:
        made = {
            "images": len(sizes),
            "bytes": sum(sizes),
            "classes": sorted(PHOTOGRAPHS),
            "photographs": PHOTOGRAPHS,
            "versions": {name: version(name) for name in ("matplotlib", "pillow", "scikit-image")},
            "sha256": digest.hexdigest(),
        }
        json.dump(made, stream, indent=1)
        stream.write("\n")


def _encoded(image: Image.Image) -> bytes:
    stream = io.BytesIO()
    image.save(stream, "JPEG", quality=QUALITY)
    return stream.getvalue()


def _view(photograph: Image.Image, chance: random.Random) -> Image.Image:
    """A random view of a photograph."""
    width, height = chance.choice(SIZES)
    largest = min(photograph.width / width, photograph.height / height)
    scale = largest * chance.uniform(0.4, 1) ** 0.5
    left = chance.uniform(0, photograph.width - scale * width)
    top = chance.uniform(0, photograph.height - scale * height)
    box = (left, top, left + scale * width, top + scale * height)
    view = photograph.resize((width, height), Image.Resampling.LANCZOS, box)
    if chance.random() < 0.5:
        view = ImageOps.mirror(view)
    # Normal noise: random bytes, each mapped to its quantile of a normal distribution around 128.
    noise = NormalDist(128, chance.choice(GRAIN))
    quantiles = bytes(round(noise.inv_cdf((byte + 0.5) / 256)) for byte in range(256))
    grain = chance.randbytes(3 * width * height).translate(quantiles)
    return ImageChops.add(view, Image.frombytes("RGB", view.size, grain), offset=-128)
