"""Training images for one rank: JPEGs from TFRecord parts or a folder, decoded ahead of time.

For frameworks that bring no fast decoder for the CPU; needs numpy, OpenCV and simplejpeg.
"""

import contextlib
import ctypes
import functools
import itertools
import math
import mmap
import multiprocessing
import os
import weakref
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

ATTEMPTS = 10  # how often a part is drawn that may not fit into the image
DRAWS = 3 + 2 * ATTEMPTS
"""Random numbers an image: whether it is flipped, a part's place, and its area and aspect ratio.

They are drawn for a whole batch, as Python's numbers: calls of numpy would hold Python's lock.
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


class Loader:
    def __init__(self, flags, rank, world_size):
        self._source = SOURCES[flags.input](flags.data, rank, world_size)
        if not len(self._source):
            allowed = "one or more for each rank"
            raise Refused(f"{flags.data}: rank {rank} has no image; allowed: {allowed}")
        self._seed = flags.seed, rank
        size = flags.shape["image_size"]
        self.shape = flags.batch_size, size, size, 3

    def __len__(self):
        return len(self._source)

    def __call__(self, number, first, indexes, images):
        """Fill uint8 images [n, H, W, 3] of a batch; returns their int64 labels [n].

        They are the source's at `indexes` [n], and the batch's from the `first` on.
        """
        random = np.random.default_rng((*self._seed, number))
        draws = random.random((self.shape[0], DRAWS))[first:].tolist()
        labels = np.empty(len(indexes), np.int64)
        for row, (index, drawn) in enumerate(zip(indexes, draws)):
            jpeg, labels[row] = self._source.read(index)
            try:
                random_crop(jpeg, drawn, images[row])
            except ValueError as error:
                where = self._source.name(index)
                raise Refused(f"{where}: {error}; allowed: a JPEG") from None
        return labels


def batches(flags, rank, world_size, page_lock=lambda array: None):
    """Endless uint8 images [N, H, W, 3] and int64 labels [N], which workers decode ahead.

    Beside a CPU they are threads: decoders release Python's lock. The thread that gives a GPU its
    work takes that lock thousands of times a second, and would wait for the others: an H100 trained
    on 4,030 images/s, and on 6,190 that nobody read. So beside a GPU they are processes. Each array
    into which these decode is given to `page_lock` once, so that a GPU can copy it by itself; it is
    filled anew once nothing refers to it.
    """
    loader = Loader(flags, rank, world_size)
    order = np.random.default_rng((flags.seed, rank))
    wanted = enumerate(_shuffled(len(loader), flags.batch_size, order))
    if flags.device == "cuda":
        workers = _Processes(loader, page_lock, flags, rank, world_size)
    else:
        workers = _Threads(loader, flags)
    # All of them work from now on.
    loading = deque(workers.begin(*next(wanted)) for _ in range(workers.ahead))

    def results():
        while True:
            loading.append(workers.begin(*next(wanted)))
            images, labels = loading.popleft()
            yield images, labels()

    return results()


class _Threads:
    def __init__(self, loader, flags):
        self._loader, self._pool = loader, ThreadPoolExecutor(flags.loader_threads)
        self.ahead = flags.loader_threads + 1

    def begin(self, number, indexes):
        """Decode a batch; returns its images, and what waits for them and gives their labels."""
        images = np.empty(self._loader.shape, np.uint8)
        return images, self._pool.submit(self._loader, number, 0, indexes, images).result


PORTION = 64
"""The number of images that a process gets at a time. It has two such portions: one that it
decodes, and one to go on with if the trainer is slow to take what is ready."""


class _Processes:
    """Images lie in memory that the processes share; it is filled anew when nobody has them."""

    def __init__(self, loader, page_lock, *arguments):
        self._shape, self._free, self._page_lock = loader.shape, [], page_lock
        start = multiprocessing.get_context("spawn")  # a copy of this one would have its GPU, too
        workers = []
        for _ in range(arguments[0].loader_threads):
            worker, end = start.Pipe()
            start.Process(target=_decode, args=(end, *arguments), daemon=True).start()
            end.close()  # so that a worker that ends is heard of
            workers.append(worker)
        self._turns = itertools.cycle(workers)
        portions = math.ceil(self._shape[0] / PORTION)
        self.ahead = 1 + math.ceil(2 * len(workers) / portions)

    def begin(self, number, indexes):
        memory = self._free.pop() if self._free else self._new_memory()
        images = np.ndarray(self._shape, np.uint8, memory.bytes)
        weakref.finalize(images, self._free.append, memory)
        at_work = []
        for first in range(0, len(indexes), PORTION):
            worker = next(self._turns)
            with _alive():
                worker.send((number, first, indexes[first : first + PORTION], memory.path))
            at_work.append(worker)
        return images, lambda: np.concatenate([_labels(worker) for worker in at_work])

    def _new_memory(self):
        memory = _Shared(int(np.prod(self._shape)))
        self._page_lock(np.frombuffer(memory.bytes, np.uint8))
        return memory


class _Shared:
    """Memory that a process of the same user opens by its path, and that ends with the last."""

    def __init__(self, size):
        # Python 3.7 and those for an old C library, as conda's, lack it; the library here has it.
        library = os if hasattr(os, "memfd_create") else ctypes.CDLL(None)
        file = library.memfd_create(b"images", 1)  # MFD_CLOEXEC
        os.ftruncate(file, size)
        self.bytes = mmap.mmap(file, size)
        self.path = f"/proc/{os.getpid()}/fd/{file}"


@contextlib.contextmanager
def _alive():
    try:
        yield
    except (EOFError, ConnectionError):  # the latter if it has not read all that it was sent
        raise RuntimeError("a process that decodes images has ended") from None


def _labels(worker):
    """The labels of the oldest portion that a process has not answered yet; waits for them."""
    with _alive():
        labels = worker.recv()
    if isinstance(labels, Refused):
        raise labels
    return labels


def _decode(trainer, *arguments):
    """Decode portions in a process, for as long as the one that trains is there."""
    # It gives way to the thread that gives the GPU its work, if there are too few cores for both.
    os.nice(10)
    loader, opened = Loader(*arguments), functools.lru_cache(maxsize=None)(_opened)
    with contextlib.suppress(EOFError, ConnectionError):
        while True:
            number, first, indexes, path = trainer.recv()
            images = np.ndarray(loader.shape, np.uint8, opened(path))[first:]
            try:
                labels = loader(number, first, indexes, images)
            except Refused as error:
                labels = error
            trainer.send(labels)


def _opened(path):
    with open(path, "r+b") as memory:
        return mmap.mmap(memory.fileno(), 0)


def _shuffled(count, size, random):
    """Endless arrays of `size` numbers below `count`: all in a random order, then again."""
    epochs = (random.permutation(count) for _ in itertools.count())
    order = itertools.chain.from_iterable(epochs)
    while True:
        yield np.fromiter(order, np.int64, size)


def random_crop(jpeg, drawn, out):
    """Decode a random part of an image, scaled and flipped half of the time, into `out`.

    The decoder leaves out what lies below the part, and halves an image as often as leaves enough
    pixels. ValueError: the image does not decode. DRAWS numbers from 0 to 1 decide the part; `out`
    is uint8 [size, size, 3], contiguous.
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
    """A rectangle (top, left, height, width) of random area and aspect ratio."""
    # Source: Szegedy et al., Going Deeper with Convolutions (2014), section 6.
    down, right, *drawn = drawn
    for at in range(0, len(drawn), 2):
        area = height * width * (AREA[0] + drawn[at] * (AREA[1] - AREA[0]))
        aspect = math.exp(LOG_ASPECT[0] + drawn[at + 1] * (LOG_ASPECT[1] - LOG_ASPECT[0]))
        w, h = round((area * aspect) ** 0.5), round((area / aspect) ** 0.5)
        if 0 < w <= width and 0 < h <= height:
            return int(down * (height - h + 1)), int(right * (width - w + 1)), h, w
    side = min(height, width)
    return (height - side) // 2, (width - side) // 2, side, side
