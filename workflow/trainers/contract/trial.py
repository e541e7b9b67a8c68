"""Try a framework on its devices: does it compute as numpy does, and how fast does it add up?

Each framework has a module `trial` with a class `Devices`, made from the flags:

    ranks        the numbers of this process's ranks, each with a device
    world_size   the number of all ranks
    names        of the devices, one for each of `ranks`
    library      what adds up numbers of different ranks, such as "gloo"
    convolve     images and filters to the result of each device, all as numpy arrays
    multiply     two matrices to their product of each device, all as numpy arrays
    ones         a count to that many float32 ones on each device
    all_reduce   such numbers to their sums over all ranks, once those are there
    arrays       such numbers to numpy arrays, one for each device
    leave        nothing to nothing: part from the other ranks
"""

import argparse
import json
import statistics
import sys
import time

import numpy as np

from trainers.contract.steplog import Refused

MARK = ":::TRIAL "
WARM_UP, TIMED = 2, 5
TOLERANCE = 1e-4
"""Of the largest number: far above float32's rounding, 1e-6, and below TF32's, 3e-4."""
IMAGES, FILTERS = (2, 8, 16, 16), (32, 8, 3, 3)
"""Of the convolution: [n, in, height, width] and [out, in, height, width]."""
LEFT, RIGHT = (64, 128), (128, 32)
"""Of the matrix product."""


def parse_trial_flags(argv=None):
    """Read the flags of a trial; engines find in them what they ask of a run's flags, too."""
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("framework", help="a folder of trainers/frameworks")
    parser.add_argument("--device", required=True, choices=("cpu", "cuda"))
    parser.add_argument("--threads", required=True, type=int, help="of a device")
    parser.add_argument("--bytes", required=True, type=int, nargs="+", help="to add up")
    parser.set_defaults(seed=0, precision="fp32", compile=False, dali=False)
    return parser.parse_args(argv)


def try_out(devices, sizes):
    """Compute on each device, add up over all, and print a line `:::TRIAL {...}` for each rank.

    Args:
        devices: as described above.
        sizes: bytes to add up; nothing is where there is only one rank.

    Raises:
        Refused: a device gives wrong numbers.
    """
    errors, _ = convolution_errors(devices), product_errors(devices)
    transfers = []
    if devices.world_size > 1:
        transfers = [{"bytes": size, "seconds": time_all_reduce(devices, size)} for size in sizes]
    for rank, name, error in zip(devices.ranks, devices.names, errors):
        said = {
            "rank": rank,
            "world_size": devices.world_size,
            "device": name,
            "convolution_error": error,
            "library": devices.library,
            "transfers": transfers,
        }
        # In one piece: other ranks write, too.
        sys.stdout.write("\n" + MARK + json.dumps(said) + "\n")
        sys.stdout.flush()
    devices.leave()


def convolution_errors(devices):
    """How far each device's convolution is from numpy's, as a part of the largest number.

    Raises:
        Refused: it is too far.
    """
    images, filters = _normal(IMAGES, FILTERS)
    right = convolved(images, filters)
    return _errors("a convolution", devices.convolve(images, filters), right)


def product_errors(devices):
    """How far each device's product of matrices is from numpy's, as a part of the largest number.

    Raises:
        Refused: it is too far.
    """
    left, right = _normal(LEFT, RIGHT)
    product = left.astype(np.float64) @ right.astype(np.float64)
    return _errors("a matrix product", devices.multiply(left, right), product)


def _normal(*shapes):
    random = np.random.RandomState(1)
    return [random.randn(*shape).astype(np.float32) for shape in shapes]


def _errors(what, made, right):
    errors = []
    for found in made:
        if found.shape != right.shape:
            raise Refused(f"{what} gave {found.shape}; allowed: {right.shape}")
        errors.append(float(np.abs(found - right).max() / np.abs(right).max()))
        if not errors[-1] <= TOLERANCE:  # neither is NaN
            raise Refused(f"{what} is {errors[-1]:.2g} off numpy's; allowed: up to {TOLERANCE:g}")
    return errors


def convolved(images, filters):
    """numpy's convolution without padding, as frameworks define it: filters are not mirrored.

    Args:
        images: float32 [n, in, height, width].
        filters: float32 [out, in, h, w].

    Returns:
        float64 [n, out, height - h + 1, width - w + 1].
    """
    high, wide = filters.shape[2:]
    rows, columns = images.shape[2] - high + 1, images.shape[3] - wide + 1
    return sum(
        np.einsum(
            "nihw,oi->nohw",
            images[:, :, y : y + rows, x : x + columns].astype(np.float64),
            filters[:, :, y, x].astype(np.float64),
        )
        for y in range(high)
        for x in range(wide)
    )


def time_all_reduce(devices, size):
    """Median seconds of an all-reduce of float32 numbers that fill `size` bytes.

    Raises:
        Refused: a sum is not that of all ranks' numbers.
    """
    seconds = []
    for _ in range(WARM_UP + TIMED):
        numbers = devices.ones(size // 4)
        devices.all_reduce(devices.ones(1))  # so that all ranks begin together
        start = time.perf_counter()
        summed = devices.all_reduce(numbers)
        seconds.append(time.perf_counter() - start)
        if not all((array == devices.world_size).all() for array in devices.arrays(summed)):
            raise Refused(f"an all-reduce of {size} bytes gave a wrong sum")
    return statistics.median(seconds[WARM_UP:])
