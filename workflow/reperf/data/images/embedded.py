"""The embedded image set: ImageNet's layout, sizes and entropy, from a few photographs.

Each class is a photograph, whose source photographs/README.md names, and each of its images a
random crop, scaled to one of ImageNet's usual sizes, perhaps mirrored, with film grain. The grain
replaces the detail that an enlarged crop lacks, so that a file is as large, and as slow to decode,
as one of ImageNet's: 110 kB at 500x375.
"""

import hashlib
import io
import json
import random
import shutil
from importlib.metadata import version
from pathlib import Path
from statistics import NormalDist

from PIL import Image, ImageChops, ImageOps

from reperf.files import whole_file

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


def make(folder: Path, images_per_class: int = 32) -> None:
    """Make train/<synset>/*.JPEG and manifest.json in a folder, in place of an earlier set there.

    The bytes depend only on the photographs and the version of Pillow.

    Raises:
        ReperfError: a file cannot be written.
    """
    train, partial = folder / "train", folder / ".train.partial"
    (folder / "manifest.json").unlink(missing_ok=True)
    for stale in (train, partial):
        shutil.rmtree(stale, ignore_errors=True)
    sizes = []
    digest = hashlib.sha256()
    for synset, source in PHOTOGRAPHS.items():
        with Image.open(FOLDER / source) as opened:
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
            "versions": {"pillow": version("pillow")},
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
