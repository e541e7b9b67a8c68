"""How fast a pipeline trains here beside data parallel, and what its stages do all the time.

Both train the same model on as many devices, in the environment of the pipeline's system, which
must be there, as `make report` or the tests build it. They take turns, so that a noisy machine
treats them alike; each ratio is taken within a turn.
"""

import argparse
import json
import os
import subprocess
import sys
from collections import defaultdict
from math import gcd
from pathlib import Path
from statistics import median

from reperf.builds import LockBuild
from reperf.plans.run_plan import naming_flags
from reperf.systems import TRAINERS, load_systems
from reperf.systems.workloads import load_workloads

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.systems.trainer import step_log  # noqa: E402

PROGRAM = ROOT / "benchmarks/timed_stage.py"
DATA_PARALLEL = "data parallel"
SHARES = ":::SHARES "


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--workload", default="alexnet")
    parser.add_argument("--pipeline", nargs="+", type=int, default=[1, 1])
    parser.add_argument("--batch-size", type=int, default=8)
    parser.add_argument("--shape", nargs="*", default=["image_size=64"])
    parser.add_argument("--warmup", type=int, default=5, help="iterations before the clock starts")
    parser.add_argument("--iterations", type=int, default=10, help="that are timed")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    python = LockBuild(load_systems()["pipedream"], "cpu").python
    if not Path(python).exists():
        how = "`snakemake .envs/<id>/environment.json` builds one"
        parser.error(f"no environment {python}; {how}")
    stages = " + ".join(map(str, options.pipeline))
    print(f"{options.workload} {' '.join(options.shape)}, batch {options.batch_size} a replica")
    ratios, overheads = [], defaultdict(list)
    for number in range(options.rounds):
        turns = [("pytorch", False), ("pipedream", True)]
        rates = {}
        for system, staged in turns if number % 2 else turns[::-1]:
            rates[system], shares = train(python, system, options, staged=staged)
            for one in shares:
                overheads[one["who"]].append(cost_of(one))
                print(f"  {line_of(one)}", flush=True)
        ratios.append(rates["pipedream"] / rates["pytorch"])
        print(
            f"round {number + 1}: stages {stages} {rates['pipedream']:.2f} images/s, "
            f"{DATA_PARALLEL} {rates['pytorch']:.2f}, ratio {ratios[-1]:.2f}",
            flush=True,
        )
    print(f"stages {stages} over {DATA_PARALLEL}, median of {options.rounds}: {median(ratios):.2f}")
    worst = max(map(median, overheads.values()))
    print(f"beside its own computing, of the rank with most: {100 * worst:.1f} %")


def train(
    python: str, system: str, options: argparse.Namespace, *, staged: bool
) -> tuple[float, list[dict]]:
    """Train once; images per second, and what each rank of a pipeline did."""
    workload = load_workloads()[options.workload]
    pairs = dict(pair.split("=") for pair in options.shape)
    shape = workload.shape_of({key: int(one) for key, one in pairs.items()})
    ranks = sum(options.pipeline)
    flags = [
        *(f"--workload={options.workload}", "--precision=fp32", "--seed=1", "--input=synthetic"),
        *(f"--batch-size={options.batch_size}", "--device=cpu", "--threads=1"),
        f"--print-every={gcd(options.warmup, options.iterations)}",
        *(f"--iterations={options.warmup + options.iterations}", "--shape"),
        *(f"{key}={number}" for key, number in shape.items()),
        *(["--pipeline", *map(str, options.pipeline)] if staged else []),
    ]
    said = subprocess.run(
        [
            *(python, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={ranks}"),
            *(str(PROGRAM), str(options.warmup)),
            *(*naming_flags(load_systems()[system], options.workload), *flags),
        ],
        check=False,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=os.environ | {"PYTHONPATH": str(TRAINERS.parent), "OMP_NUM_THREADS": "1"},
    )
    if said.returncode:
        sys.exit(said.stdout)
    _, steps = step_log(said.stdout)
    (first,) = (step for step in steps if step["iteration"] == options.warmup)
    last = steps[-1]
    rate = (last["samples"] - first["samples"]) / (last["seconds"] - first["seconds"])
    lines = [line for line in said.stdout.splitlines() if line.startswith(SHARES)]
    shares = [json.loads(line.removeprefix(SHARES)) for line in lines]
    return rate, sorted(shares, key=lambda one: one["who"])


def line_of(share: dict) -> str:
    """What a rank did, in shares of the time."""
    waits = "".join(
        f", {100 * share[what] / share['seconds']:.0f} % waiting for {what}"
        for what in ("activations", "gradients", "replicas")
        if what in share
    )
    computing = 100 * share["compute"] / share["seconds"]
    cost = f"beside it {100 * cost_of(share):.1f} % of its CPU time"
    return f"{share['who']}: {computing:.0f} % computing{waits}; {cost}"


def cost_of(share: dict) -> float:
    """The CPU time of what a rank did besides computing, over that of computing."""
    return share["busy"] / share["cpu"] - 1


if __name__ == "__main__":
    main()
