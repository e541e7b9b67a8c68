"""The arrays that a recipe makes, the same in every framework: weights and synthetic batches."""

import functools
import hashlib
import math
import zlib

import numpy as np


def initial_weights(recipe, flags):
    """Name and start of each weight, in the recipe's order."""
    for name, size in recipe.weight_shapes(flags.shape).items():
        yield name, initial_weight(recipe, flags, name, size)


def initial_weight(recipe, flags, name, size, index=None):
    """The array from which a weight starts, or a part of it, in every framework equal to the bit.

    Each has a seed of its own, so that it can be made alone. A part, a slice for each dimension, is
    for recipes that make each number from two separate bytes.
    """
    # numpy's one generator whose numbers are the same in every version.
    random = np.random.RandomState([flags.seed, zlib.crc32(name.encode())])
    if index is not None:
        random = _Part(random, size, index)
        size = random.size
    return recipe.start(name, size, random, flags.proof)


AT_ONCE = 1 << 22  # numbers that are drawn together


class _Part:
    """A generator that gives, of the bytes of a whole array, those of a part.

    It cannot skip: unwanted bytes are drawn too, and dropped at once.
    """

    def __init__(self, random, size, index):
        self._random, self._whole = random, (size[0], int(np.prod(size[1:])))
        ranges = [slice_.indices(extent)[:2] for slice_, extent in zip(index, size)]
        self.size = tuple(max(0, last - first) for first, last in ranges)
        self._rows, self._columns = [*ranges, (0, 1)][:2]

    def bytes(self, count):
        (first, last), width, made = self._rows, self._whole[1], []
        # It draws four bytes at a time: pieces of an even number of rows have all of theirs.
        at_once = max(2, AT_ONCE // width & ~1)
        for at in range(0, last, at_once):
            rows = min(at_once, self._whole[0] - at)
            drawn = np.frombuffer(self._random.bytes(2 * rows * width), "<u2").reshape(rows, width)
            wanted = drawn[max(0, first - at) : last - at, slice(*self._columns)]
            if wanted.size:
                made.append(wanted.tobytes())
        made = b"".join(made)
        if len(made) != count:
            raise ValueError(f"{count} bytes are asked for, the part has {len(made)}")
        return made


def synthetic_batch(recipe, flags, rank):
    """A rank's batch if no data is read: noise, the same in every framework."""
    random = np.random.RandomState([flags.seed, rank])
    return recipe.synthetic_batch(flags.shape, flags.batch_size, random)


def uniform(random, size, bound):
    """float32 numbers between -bound and bound, each one of 65,536 equally likely values."""
    drawn = np.frombuffer(random.bytes(2 * int(np.prod(size))), "<u2").astype(np.float32)
    drawn -= np.float32(32767.5)
    drawn *= np.float32(bound / 32768)
    return drawn.reshape(size)


def truncated_normal(random, size, deviation):
    """float32 numbers, normal but cut off at two deviations: 65,536 equally likely values."""
    drawn = np.frombuffer(random.bytes(2 * int(np.prod(size))), "<u2")
    return (_quantiles() * np.float32(deviation))[drawn].reshape(size)


@functools.lru_cache(maxsize=None)
def _quantiles():
    """The middles of 65,536 equally likely parts of a normal distribution cut off at 2: float32."""
    places = np.linspace(-2.0, 2.0, 4097)
    below = np.array([math.erf(place / 2**0.5) for place in places]) / math.erf(2**0.5)
    middles = (np.arange(65536) + 0.5) / 65536
    return np.interp(middles, (below + 1) / 2, places).astype(np.float32)


class Watched:
    """A rank's weights from their start to their end; `read` gives name and array of each.

    A proof says how far each weight has come: decay of a single bias hardly shows in a loss, but in
    the change of that bias. Transposed, as frameworks may have it, a weight has the same length.
    """

    def __init__(self, log, read):
        self._read, self._names, self._start = read, log.names, None
        if log.flags.proof:
            # Some frameworks' arrays are the weights themselves, which will change.
            self._start = {name: np.array(one, np.float32) for name, one in read()}

    def digest(self):
        return digest(weight for _, weight in self._read())

    def changes(self, backend, part):
        """How far each weight has come since the start, as an L2 norm; None but for a proof."""
        # Squares add up: over the parts of a model, and over the shares of a weight.
        if self._start is None:
            return None
        own = [[name, length(weight - self._start[name])] for name, weight in self._read()]
        squares = dict.fromkeys(self._names, 0.0)
        for changes in dict(backend.gather([part, own])).values():
            for name, change in changes:
                squares[name] += change**2
        return [square**0.5 for square in squares.values()]


def length(array):
    """The L2 norm of a float32 array, added up in float64."""
    return math.sqrt(np.sum(np.square(array), dtype=np.float64))


def digest(weights):
    seen = hashlib.sha256()
    for weight in weights:
        seen.update(np.ascontiguousarray(weight, np.float32))
    return seen.hexdigest()[:16]
