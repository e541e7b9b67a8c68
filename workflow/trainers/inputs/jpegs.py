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
from trainers.inputs.jpeg_rows import upper_rows
from trainers.inputs.tfrecord import Records

cv2.setNumThreads(1)  # the loader has its own threads

ATTEMPTS = 10
"""How often a part is drawn that may not fit into the image."""
DRAWS = 3 + 2 * ATTEMPTS
"""Random numbers an image: whether it is flipped, a part's place, and its area and aspect ratio.

They are drawn for a whole batch at once and reckoned with as Python's own numbers: a call of numpy
for each would hold the interpreter's lock, which the other threads need, for longer.
"""
LOG_ASPECT = tuple(map(math.log, ASPECT))


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
    """Endless batches, decoded ahead by flags.loader_threads threads while the model trains.

    The decoders release Python's lock while they work, so threads are enough, and the memory that a
    thread fills can be copied straight to the device.

    Args:
        flags: input, data, batch_size, shape, loader_threads and seed.
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
        draws = np.random.default_rng((flags.seed, rank, number)).random((len(indexes), DRAWS))
        images, labels = (new_batch or new_arrays)()
        rows, classes = np.asarray(images), np.asarray(labels)
        for row, (index, drawn) in enumerate(zip(indexes, draws.tolist())):
            jpeg, classes[row] = source.read(index)
            try:
                random_crop(jpeg, drawn, rows[row])
            except ValueError as error:
                raise Refused(f"{source.name(index)}: {error}; allowed: a JPEG") from None
        return images, labels

    order = np.random.default_rng((flags.seed, rank))
    wanted = enumerate(_shuffled(len(source), flags.batch_size, order))
    pool = ThreadPoolExecutor(flags.loader_threads, initializer=start_thread)
    return _ahead(load, wanted, pool, count=flags.loader_threads + 1)


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


def random_crop(jpeg, drawn, out):
    """Decode a random part of an image, scaled and flipped half of the time.

    The decoder leaves out what lies below the part. If the part is large, the decoder itself halves
    the image, as often as leaves enough pixels.

    Args:
        jpeg: the image's bytes.
        drawn: DRAWS numbers from 0 to 1 that decide the part.
        out: uint8 [size, size, 3], contiguous, which is filled.

    Raises:
        ValueError: the image does not decode.
    """
    size = len(out)
    flipped, *drawn = drawn
    try:
        height, width, _, _ = simplejpeg.decode_jpeg_header(jpeg)
        y, x, h, w = _random_part(height, width, drawn)
        # Two rows more, also of a halved image.
        jpeg_above, rows = upper_rows(jpeg, height, y + h + 2 * math.ceil(h / size))
        # At most half of each side, or else all of it: scales in between take longer than none.
        image = simplejpeg.decode_jpeg(
            jpeg_above,
            min_height=min(rows, math.ceil(rows * size / h)),
            min_width=min(width, math.ceil(width * size / w)),
            min_factor=2,
            strict=rows == height,
        )
    except ValueError:  # ImageNet holds a few CMYK JPEGs and a PNG
        image = cv2.imdecode(np.frombuffer(jpeg, np.uint8), cv2.IMREAD_COLOR)
        if image is None:
            raise ValueError("does not decode") from None
        image = cv2.cvtColor(image, cv2.COLOR_BGR2RGB)
        height, width, _ = image.shape
        y, x, h, w = _random_part(height, width, drawn)
    scale = image.shape[1] / width
    top, left = int(y * scale), int(x * scale)
    part = image[top : top + max(1, round(h * scale)), left : left + max(1, round(w * scale))]
    if flipped < 0.5:
        cv2.flip(cv2.resize(part, (size, size), interpolation=cv2.INTER_LINEAR), 1, out)
    else:
        cv2.resize(part, (size, size), out, interpolation=cv2.INTER_LINEAR)


def _random_part(height, width, drawn):
    """A rectangle (top, left, height, width) of random area and aspect ratio.

    Source: Szegedy et al., Going Deeper with Convolutions (2014), section 6.
    """
    down, right, *drawn = drawn
    for at in range(0, len(drawn), 2):
        area = height * width * (AREA[0] + drawn[at] * (AREA[1] - AREA[0]))
        aspect = math.exp(LOG_ASPECT[0] + drawn[at + 1] * (LOG_ASPECT[1] - LOG_ASPECT[0]))
        w, h = round((area * aspect) ** 0.5), round((area / aspect) ** 0.5)
        if 0 < w <= width and 0 < h <= height:
            return int(down * (height - h + 1)), int(right * (width - w + 1)), h, w
    side = min(height, width)
    return (height - side) // 2, (width - side) // 2, side, side
