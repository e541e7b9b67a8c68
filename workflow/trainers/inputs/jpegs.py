"""Training images for one rank: JPEGs from TFRecord parts or a folder, decoded ahead of time.

For frameworks that bring no fast decoder for the CPU; needs numpy, OpenCV and simplejpeg.
"""

import itertools
import math
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import cv2
import numpy as np
import simplejpeg

from trainers.contract.steplog import Refused
from trainers.inputs.images import AREA, ASPECT
from trainers.inputs.tfrecord import Records

cv2.setNumThreads(1)  # the loader has its own threads


class Folder:
    """This rank's share of the images under train/<synset>/: every world-size-th image."""

    def __init__(self, folder, rank, world_size):
        synsets = sorted(path for path in Path(folder, "train").glob("*") if path.is_dir())
        images = [
            (path, label)
            for label, synset in enumerate(synsets)
            for path in sorted(synset.iterdir())
            if path.suffix.lower() in (".jpeg", ".jpg")
        ]
        self._images = images[rank::world_size]

    def __len__(self):
        return len(self._images)

    def name(self, index):
        return str(self._images[index][0])

    def read(self, index):
        """An image file's bytes and its label, from 0."""
        path, label = self._images[index]
        return path.read_bytes(), label


SOURCES = {"tfrecord": Records, "folder": Folder}


def batches(flags, rank, world_size, new_batch=None, start_thread=None):
    """Endless batches, decoded ahead by flags.threads threads while the model trains.

    The decoders release Python's lock while they work, so threads are enough, and the memory that a
    thread fills can be copied straight to the device.

    Args:
        flags: input, data, batch_size, shape, threads and seed.
        rank: with the seed, decides the order and the crops.
        world_size: how many ranks share the images.
        new_batch: makes the two tensors to fill, in memory that numpy can see; by default arrays.
        start_thread: what each thread calls first.

    Returns:
        An iterator of uint8 images [N, H, W, 3] and int64 labels [N].

    Raises:
        Refused: there is no image for this rank, or one cannot be decoded.
    """
    source = SOURCES[flags.input](flags.data, rank, world_size)
    if not len(source):
        raise Refused(f"{flags.data}: rank {rank} has no image; allowed: one or more for each rank")
    shape = (flags.batch_size, flags.shape["image_size"], flags.shape["image_size"], 3)

    def new_arrays():
        return np.empty(shape, np.uint8), np.empty(flags.batch_size, np.int64)

    def load(batch):
        number, indexes = batch
        random = np.random.default_rng((flags.seed, rank, number))
        images, labels = (new_batch or new_arrays)()
        rows, classes = np.asarray(images), np.asarray(labels)
        for row, index in enumerate(indexes):
            jpeg, classes[row] = source.read(index)
            try:
                rows[row] = random_crop(jpeg, flags.shape["image_size"], random)
            except ValueError as error:
                raise Refused(f"{source.name(index)}: {error}; allowed: a JPEG") from None
        return images, labels

    order = np.random.default_rng((flags.seed, rank))
    wanted = enumerate(_shuffled(len(source), flags.batch_size, order))
    pool = ThreadPoolExecutor(flags.threads, initializer=start_thread)
    return _ahead(load, wanted, pool, count=flags.threads + 1)


def _ahead(load, wanted, pool, count):
    """The results of `load`, in order; `count` of them are being computed from now on."""
    loading = deque(pool.submit(load, next(wanted)) for _ in range(count))

    def results():
        while True:
            loading.append(pool.submit(load, next(wanted)))
            yield loading.popleft().result()

    return results()


def _shuffled(count, size, random):
    """Endless lists of `size` numbers below `count`: all of them in a random order, then again."""
    epochs = (random.permutation(count) for _ in itertools.count())
    order = itertools.chain.from_iterable(epochs)
    while True:
        yield list(itertools.islice(order, size))


def random_crop(jpeg, size, random):
    """Decode a random part of an image, scaled to size x size and flipped half of the time.

    If the part is large, the decoder itself halves the image, as often as leaves enough pixels.
    """
    try:
        height, width, _, _ = simplejpeg.decode_jpeg_header(jpeg)
        y, x, h, w = _random_part(height, width, random)
        # At most half of each side, or else all of it: scales in between take longer than none.
        image = simplejpeg.decode_jpeg(
            jpeg,
            min_height=min(height, math.ceil(height * size / h)),
            min_width=min(width, math.ceil(width * size / w)),
            min_factor=2,
        )
    except ValueError:  # ImageNet holds a few CMYK JPEGs and a PNG
        image = cv2.imdecode(np.frombuffer(jpeg, np.uint8), cv2.IMREAD_COLOR_RGB)
        if image is None:
            raise ValueError("does not decode") from None
        height, width, _ = image.shape
        y, x, h, w = _random_part(height, width, random)
    scale = image.shape[0] / height
    top, left = int(y * scale), int(x * scale)
    part = image[top : top + max(1, round(h * scale)), left : left + max(1, round(w * scale))]
    scaled = cv2.resize(part, (size, size), interpolation=cv2.INTER_LINEAR)
    return scaled[:, ::-1] if random.random() < 0.5 else scaled


def _random_part(height, width, random):
    """A rectangle (top, left, height, width) of random area and aspect ratio.

    Source: Szegedy et al., Going Deeper with Convolutions (2014), section 6.
    """
    for _ in range(10):
        area = height * width * random.uniform(*AREA)
        aspect = np.exp(random.uniform(*np.log(ASPECT)))
        w, h = round((area * aspect) ** 0.5), round((area / aspect) ** 0.5)
        if 0 < w <= width and 0 < h <= height:
            return random.integers(height - h + 1), random.integers(width - w + 1), h, w
    side = min(height, width)
    return (height - side) // 2, (width - side) // 2, side, side
