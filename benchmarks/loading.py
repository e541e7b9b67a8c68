"""How fast each system's loader reads, decodes and crops images on the CPU.

Every round gives the same images, which lie in the page cache, to each loader in turn, so that a
noisy machine treats them alike. Beside them: NVIDIA DALI's CPU pipeline, which is the loader of
ngc-pytorch, and the decoder alone, which decodes whole JPEGs out of memory and does nothing else.
Rates are medians over the rounds, and so are the ratios, which are taken within each round.

The environments of the systems must be there, as `make report` or the tests build them.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

from reperf.builds import LockBuild
from reperf.data.images import Images
from reperf.systems import TRAINERS, load_systems

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "benchmarks"), str(ROOT)]

from convert import make_many_images  # noqa: E402

from tests.systems.loaders import LOADERS  # noqa: E402

DALI = "ngc-pytorch"
"""Whose loader is DALI's CPU pipeline."""
DECODER_ALONE = "simplejpeg alone"
"""In the environment of pytorch."""
PEERS = {"dali": DALI, "decoder": DECODER_ALONE}
CLOCKS = ("images/s", "images/CPU-s")

# One process whose graph returns what its reader gives.
ONEFLOW = """
import oneflow
from trainers.frameworks.oneflow.inputs import RecordImages
class Reading(oneflow.nn.Graph):
    def __init__(self, images):
        super().__init__()
        self.images = images
    def build(self):
        return self.images()
def batches(flags, rank, world_size):
    read = Reading(RecordImages(flags, rank, world_size))
    while True:
        yield [part.to_local().numpy() for part in read()]
"""

DECODER = """
from collections import deque
from concurrent.futures import ThreadPoolExecutor
import simplejpeg
from trainers.inputs.tfrecord import Records
def batches(flags, rank, world_size):
    records = Records(flags.data, rank, world_size)
    jpegs = [bytes(records.read(index)[0]) for index in range(len(records))]
    def decode(at):
        for index in range(at, at + flags.batch_size):
            simplejpeg.decode_jpeg(jpegs[index % len(jpegs)])
    pool = ThreadPoolExecutor(flags.loader_threads)
    starts = itertools.count(0, flags.batch_size)
    ahead = deque(pool.submit(decode, next(starts)) for _ in range(flags.loader_threads + 1))
    while True:
        ahead.append(pool.submit(decode, next(starts)))
        yield ahead.popleft().result()
"""

TIMED = """
import itertools, json, time
import numpy as np
from trainers.contract.flags import parse_flags
from trainers.recipes import resnet50
flags = parse_flags(resnet50, {flags})
{loader}
source = iter(batches(flags, 0, 1))
def take(count):
    for _ in range(count):
        next(source)
take({warmup})
begin = time.perf_counter(), time.process_time()
take({measured})
end = time.perf_counter(), time.process_time()
print(json.dumps([last - first for first, last in zip(begin, end)]))
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--images", type=int, default=2000, help="copies of the embedded ones")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--batches", type=int, default=30, help="of 64 images, after 10 of warm-up")
    parser.add_argument("--systems", nargs="+", default=[*LOADERS], choices=[*LOADERS])
    parser.add_argument("--beside", nargs="+", default=[*PEERS], choices=[*PEERS])
    parser.add_argument("--folder", type=Path, help="where to work, instead of the usual temporary")
    options = parser.parse_args()
    peers = [PEERS[name] for name in options.beside]
    systems = [
        name
        for name in dict.fromkeys([*peers, "pytorch", *options.systems])
        if name != DECODER_ALONE
    ]
    if missing := [name for name in systems if not python_of(name).exists()]:
        how = "`snakemake .envs/<id>/environment.json` builds one"
        parser.error(f"no environment of {', '.join(missing)}; {how}")
    with tempfile.TemporaryDirectory(dir=options.folder) as scratch:
        data = make_records(Path(scratch), systems, options.images)
        for threads in options.threads:
            rounds = []
            for number in range(options.rounds):
                print(f"{threads} threads: round {number + 1}", file=sys.stderr)
                rounds.append(one_round(systems, data, threads, options.batches))
            show(rounds, threads, peers)


def python_of(system: str) -> Path:
    return LockBuild(load_systems()[system], "cpu").python


def reads(system: str) -> str:
    """The record format that a system reads."""
    return load_systems()[system].workloads["resnet50"].reads[0]


def make_records(folder: Path, systems: list[str], count: int) -> dict[str, Path]:
    """The same images in each record format that the systems read: its name -> folder."""
    images = folder / "images"
    make_many_images(images, count)
    made = {}
    for name in dict.fromkeys(map(reads, systems)):
        made[name] = folder / name
        made[name].mkdir()
        Images(images=images, parts=8).convert(made[name], name, workers=2)
    return made


def one_round(
    systems: list[str], data: dict[str, Path], threads: int, batches: int
) -> dict[str, tuple[float, float]]:
    """Images per second and per CPU-second of each loader, by its name."""
    rates = {DECODER_ALONE: rate("pytorch", DECODER, data, threads, batches)}
    for system in systems:
        loader = ONEFLOW if system == "oneflow" else LOADERS[system]
        rates[system] = rate(system, loader, data, threads, batches)
    return rates


def rate(
    system: str, loader: str, data: dict[str, Path], threads: int, batches: int
) -> tuple[float, float]:
    """Images per second and per CPU-second of one loader, in its system's environment."""
    form = reads(system)
    flags = [
        *("--workload=resnet50", "--precision=fp32", "--batch-size=64", "--iterations=1"),
        *("--print-every=1", f"--input={form}", f"--data={data[form]}", "--device=cpu"),
        *("--shape", "image_size=224", f"--threads={threads}", "--seed=1"),
    ]
    code = TIMED.format(flags=flags, loader=loader, warmup=10, measured=batches)
    said = subprocess.run(
        [python_of(system), "-c", code],
        check=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=os.environ | {"PYTHONPATH": str(TRAINERS.parent), "OMP_NUM_THREADS": str(threads)},
    )
    wall, cpu = json.loads(said.stdout.splitlines()[-1])
    return 64 * batches / wall, 64 * batches / cpu


def show(rounds: list[dict[str, tuple[float, float]]], threads: int, peers: list[str]) -> None:
    """Print each loader's median rates and its median ratios to its peers."""
    print(f"\n{threads} loader threads, {os.cpu_count()} CPUs, {len(rounds)} rounds")
    titles = "".join(f" of {name:>16}" for name in peers)
    print(f"{'':18}" + "".join(f" {clock:>13}{titles}" for clock in CLOCKS))
    for name in rounds[0]:
        columns = ""
        for clock in range(len(CLOCKS)):
            columns += f" {median(one[name][clock] for one in rounds):13.0f}"
            for peer in peers:
                ratio = median(one[name][clock] / one[peer][clock] for one in rounds)
                columns += f" {ratio:19.2f}"
        print(f"{name:18}{columns}")


if __name__ == "__main__":
    main()
