"""What parameter servers cost: samples of CTR-DNN per CPU second of trainers and servers together.

Beside every system with servers, in each of its variants, trains the same framework without
reperf's driver, as its guide has it, and a torch server that is written by hand. All have one
server and two trainers, a thread each; with reperf and torch they start from the same weights. They
take turns, and each ratio is taken within a turn.
"""

import argparse
import contextlib
import json
import os
import re
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import NamedTuple

import psutil
from reperf.builds import LockBuild
from reperf.systems import load_systems
from reperf.systems.workloads import load_workloads

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.systems.trainer import TRAIN_ONCE, small  # noqa: E402

PEER = "torch.distributed.rpc"
ALONE = {
    "paddle-fleet": "sync",
    "paddle-fleet+async": "async",
    "paddle-fleet+geo": "geo",
    "tensorflow-ps": "strategy",
    "tensorflow-ps+v1": "session",
}
"""How servers_alone.py calls what a system, with its variant, trains."""
TRAINERS = 2
EVERY = 5
"""Iterations between two lines of a log."""
SECONDS = 1200
"""For a run."""
_STEP = re.compile(r'"samples": (\d+),.*?"metadata": \{.*?(?:"rank": (\d+)|\})')


class Command(NamedTuple):
    """What trains.

    Attributes:
        words: the program and its arguments.
        tell: how many trainers tell what they have trained: each its own, or one all of it.
    """

    words: list[str]
    tell: int


def main() -> None:
    flags = parse_flags()
    own = dict(ours(flags))
    bare = {f"{name}, alone": alone(name, flags) for name in own}
    commands = own | bare | {PEER: peer(flags)}
    rates: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(flags.rounds):
        for name, command in commands.items():
            rates[name].append(rate_of(name, command, flags))
            print(f"{name}: {rates[name][-1]:.0f} samples/CPU-s", flush=True)
    print(f"{'':28} samples/CPU-s  times {PEER}  times alone")
    for name, of_it in rates.items():
        others = [PEER, f"{name}, alone"] if name in own else [PEER]
        times = [f"{times_of(of_it, rates[other]):.2f}" for other in others]
        print(f"{name:28} {median(of_it):13.0f}  {'  '.join(times)}")


def times_of(rates: list[float], others: list[float]) -> float:
    return median(one / other for one, other in zip(rates, others, strict=True))


def parse_flags() -> argparse.Namespace:
    servers = [name for name, one in load_systems().items() if one.serve]
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--systems", nargs="+", choices=servers, default=servers)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--warmup", type=int, default=20, help="iterations that do not count")
    parser.add_argument("--iterations", type=int, default=200, help="that count")
    parser.add_argument("--batch-size", type=int, default=1000, help="per trainer")
    parser.add_argument("--shape", nargs="*", default=[], metavar="NAME=NUMBER")
    flags = parser.parse_args()
    given = {name: int(number) for name, number in (one.split("=") for one in flags.shape)}
    flags.shape = load_workloads()["ctr"].shape_of(given)
    flags.all = flags.warmup + flags.iterations
    return flags


def ours(flags: argparse.Namespace) -> Iterator[tuple[str, Command]]:
    """Each system, and each of its variants, as the workflow trains it."""
    for name in flags.systems:
        system = load_systems()[name]
        for variant in (None, *system.workloads["ctr"].variants):
            together = system.keeps_own_time(variant)
            run = small(
                name,
                workload="ctr",
                variant=variant,
                together=together,
                shape=flags.shape,
                batch_size=flags.batch_size,
                iterations=flags.all,
                print_every=EVERY,
                servers={"per_node": 1},
            )
            words = [sys.executable, str(TRAIN_ONCE), json.dumps(run), str(SECONDS)]
            tell = TRAINERS if together else 1
            yield f"{name}+{variant}" if variant else name, Command(words, tell)


def alone(name: str, flags: argparse.Namespace) -> Command:
    """What a system trains, without reperf's driver."""
    words = written_by_hand(name.partition("+")[0], flags, "servers_alone.py", ALONE[name])
    return Command(words, 1 if ALONE[name] == "strategy" else TRAINERS)


def peer(flags: argparse.Namespace) -> Command:
    """torch's server that is written by hand, with its trainers."""
    return Command(written_by_hand("pytorch", flags, "torch_rpc.py"), TRAINERS)


def written_by_hand(system: str, flags: argparse.Namespace, *words: str) -> list[str]:
    """A program of this folder, in a system's environment, with the words that come first."""
    system = load_systems()[system]
    python = ROOT / LockBuild(system, "cpu").python
    numbers = [str(flags.all), str(flags.batch_size)]
    pairs = [f"{name}={number}" for name, number in flags.shape.items()]
    program, *first = words
    return [str(python), str(ROOT / "benchmarks" / program), *first, *numbers, *pairs]


def rate_of(name: str, command: Command, flags: argparse.Namespace) -> float:
    """The samples per CPU second, between the end of the warm-up and the first trainer's end."""
    variables = {**os.environ, "PYTHONPATH": str(ROOT / "workflow"), "OMP_NUM_THREADS": "1"}
    batch = flags.batch_size * TRAINERS // command.tell
    warm, last = flags.warmup * batch, flags.all * batch
    seen = []
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, ".envs").symlink_to(ROOT / ".envs")
        log = Path(folder, "train.log")
        with log.open("w") as output:
            process = psutil.Popen(
                command.words, cwd=folder, env=variables, stdout=output, stderr=output
            )
        while process.poll() is None:
            time.sleep(0.05)
            trained = samples_in(folder)
            if len(trained) == command.tell and all(warm <= one < last for one in trained.values()):
                seen.append((sum(trained.values()), cpu_seconds(process)))
        if process.returncode or not seen or seen[0] == seen[-1]:
            records = (json.loads(one.read_text()) for one in Path(folder).rglob("1/run.json"))
            reason = next((one["reason"] for one in records if one["status"] != "ok"), "")
            few = "too few iterations to measure"
            reason = reason or (log.read_text()[-2000:] if process.returncode else few)
            sys.exit(f"{name}, {flags.all} iterations with the warm-up: {reason}")
    (first, begun), (end, ended) = seen[0], seen[-1]
    return (end - first) / (ended - begun)


def samples_in(folder: str) -> dict[str, int]:
    """The rank of each trainer that tells -> its samples so far."""
    found = {}
    for log in Path(folder).rglob("train.log"):
        with contextlib.suppress(OSError):  # it is being moved
            for samples, rank in _STEP.findall(log.read_text(errors="replace")):
                found[rank] = int(samples)
    return found


def cpu_seconds(process: psutil.Process) -> float:
    """What all that a process has started has taken of the CPUs, without itself."""
    total = 0.0
    for one in process.children(recursive=True):
        with contextlib.suppress(psutil.Error):  # it has ended
            times = one.cpu_times()
            total += times.user + times.system
    return total


if __name__ == "__main__":
    main()
