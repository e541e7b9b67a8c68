"""Try a framework on its device: does it compute as numpy does, and how fast does it add up?"""

import argparse
import json
import statistics
import sys
import time
from importlib import import_module

import numpy as np

from trainers.contract.steplog import Refused

MARK = ":::TRIAL "
WARM_UP, TIMED = 2, 5
TOLERANCE = 1e-4
"""Of the largest number: far above float32's rounding, 1e-6, and below TF32's, 3e-4."""
IMAGES, FILTERS = (2, 8, 16, 16), (32, 8, 3, 3)
"""Of the convolution: [n, in, height, width] and [out, in, height, width]."""
LEFT, RIGHT = (64, 128), (128, 32)  # of the matrix product
SIDES = {"cpu": (128, 512, 1024, 2048, 4096, 8192), "cuda": (8192,)}
"""Sizes of the square matrices whose products are timed, until one takes LONG_ENOUGH seconds.

On a GPU, small ones say nothing of its rate, and XLA tunes a program for each: a second or more.
"""
BLOCK, CHAIN, PRODUCTS, LONG_ENOUGH = 512, 4, 3, 0.05


class Trial:
    """What a framework computes of a Backend's numbers, not waited for; each adds `convolve`."""

    def __init__(self, backend):
        self.backend = backend

    def multiply(self, left, right):
        """Numbers, [n, m], times [m, k], which may be cast."""
        return left @ right

    def cast(self, numbers, dtype):
        """Numbers in another data type: float32, float16, bfloat16 or float8."""
        return numbers.astype(dtype)


def trial_of(backend):
    """The Trial of a backend's framework, from the module `trial` in its folder."""
    framework = backend.flags.backend.split(".")[0]
    return import_module(f"trainers.frameworks.{framework}.trial").Trial(backend)


def parse_trial_flags():
    """Read the flags of a trial; backends find in them what they ask of a run's flags, too."""
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--backend", required=True, help="in trainers/frameworks: torch.backend")
    parser.add_argument("--device", required=True, choices=("cpu", "cuda"))
    parser.add_argument("--threads", required=True, type=int, help="of a device")
    parser.add_argument("--bytes", required=True, type=int, nargs="+", help="to add up")
    parser.add_argument("--rates", action="store_true", help="time products of matrices, too")
    parser.set_defaults(seed=0, precision="fp32", compile=False, dali=False)
    return parser.parse_args()


def try_out(trial, sizes, rates=True):
    """Compute on the device, add up so many bytes over all ranks, and print `:::TRIAL {...}`.

    Refused: the device gives wrong numbers.
    """
    backend = trial.backend
    error = error_of(backend, "a convolution", trial.convolve, convolved, (IMAGES, FILTERS))
    error_of(backend, "a matrix product", trial.multiply, np.matmul, (LEFT, RIGHT))
    said = {
        "rank": backend.place.rank,
        "world_size": backend.place.world_size,
        "device": backend.device_name,
        "convolution_error": error,
        "matrix_rates": matrix_rates(trial) if rates else {},
        "library": backend.library,
        "transfers": [
            {"bytes": size, "seconds": time_all_reduce(backend, size)}
            for size in sizes
            if backend.place.world_size > 1
        ],
    }
    # In one piece: other ranks write, too.
    sys.stdout.write("\n" + MARK + json.dumps(said) + "\n")
    sys.stdout.flush()
    backend.leave()


def error_of(backend, what, compute, of_numpy, shapes):
    """How far what the device computes is from what numpy does, as a part of the largest number."""
    random = np.random.RandomState(1)
    given = [random.randn(*shape).astype(np.float32) for shape in shapes]
    found, right = backend.array(compute(*map(backend.numbers, given))), of_numpy(*given)
    if found.shape != right.shape:
        raise Refused(f"{what} gave {found.shape}; allowed: {right.shape}")
    error = float(np.abs(found - right).max() / np.abs(right).max())
    if not error <= TOLERANCE:  # neither is NaN
        raise Refused(f"{what} is {error:.2g} off numpy's; allowed: up to {TOLERANCE:g}")
    return error


def convolved(images, filters):
    """numpy's convolution, as frameworks define it: without padding, and filters are not mirrored.

    Of float32 [n, in, height, width] and [out, in, h, w]: float64 [n, out, height - h + 1, ..].
    """
    high, wide = filters.shape[2:]
    rows, columns = images.shape[2] - high + 1, images.shape[3] - wide + 1
    images, filters = images.astype(np.float64), filters.astype(np.float64)
    return sum(
        np.einsum("nihw,oi->nohw", images[:, :, y : y + rows, x : x + columns], filters[:, :, y, x])
        for y in range(high)
        for x in range(wide)
    )


def matrix_rates(trial):
    """How fast this device multiplies matrices: data type -> the most operations a second."""
    device = trial.backend.flags.device
    types = ("float32", *trial.backend.computes.get(device, ()))
    if device == "cpu":
        types = tuple(dtype for dtype in types if dtype != "float8")  # seconds for one product
    rates = {dtype: _rates(trial, dtype) for dtype in types}
    return {dtype: max(found) for dtype, found in rates.items() if found}


def _rates(trial, dtype):
    found = []
    for side in SIDES[trial.backend.flags.device]:
        try:
            seconds = _time_products(trial, dtype, side)
        except Exception:  # frameworks multiply fewer types here than their layers compute in
            break
        found.append(2 * CHAIN * side**3 / seconds)
        if seconds > LONG_ENOUGH:
            break
    return found


def _time_products(trial, dtype, side):
    """The least seconds of CHAIN products of square matrices, each with the one before."""
    random, numbers = np.random.RandomState(1), trial.backend.numbers
    # The same block over and over: large random matrices take longer to draw than to multiply.
    many = max(1, side // BLOCK)
    block = random.randn(BLOCK, BLOCK) / (many * np.sqrt(BLOCK))  # products stay finite
    block, times = block[:side, :side], (many, many)
    square = trial.cast(numbers(np.tile(block.astype(np.float32), times)), dtype)
    column = trial.cast(numbers(random.randn(side, 1).astype(np.float32)), dtype)
    seconds = []
    for _ in range(1 + PRODUCTS):  # the first time warms up
        start = time.perf_counter()
        product = square
        for _ in range(CHAIN):
            product = trial.multiply(product, square)
        product = trial.cast(trial.multiply(product, column), "float32")  # little to fetch
        trial.backend.array(product)
        seconds.append(time.perf_counter() - start)
    return min(seconds[1:])


def time_all_reduce(backend, size):
    """Median seconds of an all-reduce of float32 numbers that fill `size` bytes."""
    seconds = []
    for _ in range(WARM_UP + TIMED):
        numbers = backend.numbers(np.ones(size // 4, np.float32))
        backend.all_reduce(backend.numbers(np.ones(1, np.float32)))  # all ranks begin together
        start = time.perf_counter()
        summed = backend.all_reduce(numbers)
        seconds.append(time.perf_counter() - start)
        if not (backend.array(summed) == backend.place.world_size).all():
            raise Refused(f"an all-reduce of {size} bytes gave a wrong sum")
    return statistics.median(seconds[WARM_UP:])
