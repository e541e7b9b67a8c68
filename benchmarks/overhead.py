"""What the workflow adds to the runs: time and CPU time of a run, and time to plan.

    python benchmarks/overhead.py [--runs 20] [--jobs 100 1000 10000] [--only local slurm plan]

The runs are of a stand-in that prints a whole step log at once, so that nearly all that is spent
is the workflow's. Slurm is the test cluster (tests/slurm/cluster.py), and needs what it needs.
"""

import argparse
import json
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import psutil

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests/slurm")]

from cluster import SlurmCluster, why_not  # noqa: E402
from slurm_benchmark import SlurmBenchmark  # noqa: E402
from small_benchmark import SMALL, Benchmark, new_benchmark  # noqa: E402
from stand_in import add_stand_in  # noqa: E402

SUITE = SMALL["suites"][1] | {"name": "overhead", "precision": "fp32", "systems": ["stand-in"]}


def new(folder: Path, runs: int) -> Benchmark:
    """A benchmark of so many runs of the stand-in."""
    benchmark = new_benchmark(folder, ROOT / ".envs")
    add_stand_in(folder, "stand-in", shares="pytorch")
    benchmark.configure(suites=[SUITE | {"repeats": runs}])
    return benchmark


def measure(benchmark: Benchmark, place: str, cpu_seconds: Callable[[], float]) -> None:
    """Train all runs, and print what a run costs beyond what its trainer takes."""
    # Planning, and starting Snakemake, are paid once and measured on their own.
    command = ["--until", "train", "--quiet", "all"]
    started, spent = time.perf_counter(), cpu_seconds()
    answer = benchmark.snakemake(*command, timeout=3600)
    seconds, cpu = time.perf_counter() - started, cpu_seconds() - spent
    if answer.returncode:
        sys.exit(answer.stdout)
    records = [json.loads(path.read_text()) for path in benchmark.folder.rglob("1n1g/*/run.json")]
    trained = sum(record["seconds"] for record in records)
    runs = len(records)
    print(
        f"{place:<6} {runs} runs  {seconds:6.1f} s, of which trainers {trained:5.1f} s: "
        f"{(seconds - trained) / runs:5.2f} s a run;  {cpu / runs:5.2f} CPU-s a run",
        flush=True,
    )


def own_cpu() -> float:
    """CPU seconds of all that this process has started and waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def cpu_of_tree(process: psutil.Process) -> float:
    """CPU seconds of a process, of those below it, and of those that they have waited for."""
    family = [process, *process.children(recursive=True)]
    return sum(sum(member.cpu_times()[:4]) for member in family)


def local(folder: Path, runs: int) -> None:
    measure(new(folder, runs), "local", own_cpu)


def slurm(folder: Path, runs: int) -> None:
    if reason := why_not():
        sys.exit(f"no Slurm cluster can run here: {reason}")
    with SlurmCluster(folder / "cluster") as cluster:
        benchmark = SlurmBenchmark(new(folder / "benchmark", runs).folder, cluster)
        benchmark.configure(suites=[SUITE | {"repeats": runs}])
        nodes = [psutil.Process(machine.pid) for machine in cluster.machines]
        measure(benchmark, "Slurm", lambda: own_cpu() + sum(map(cpu_of_tree, nodes)))


def plan(folder: Path, jobs: list[int]) -> None:
    """Print how long Snakemake takes to plan reports of so many runs: the median of three."""
    benchmark = new(folder, 1)
    _planning(benchmark, 1)  # the first calls read files that later ones find in memory
    start = _planning(benchmark, 1)
    print(f"plan   {1:>6} run   {start:6.2f} s")
    for runs in jobs:
        seconds = _planning(benchmark, runs)
        each = 1000 * (seconds - start) / runs
        print(f"plan   {runs:>6} runs  {seconds:6.2f} s: {each:.2f} ms a run", flush=True)


def _planning(benchmark: Benchmark, runs: int) -> float:
    benchmark.configure(suites=[SUITE | {"repeats": runs}])
    seconds = []
    for _ in range(3):
        started = time.perf_counter()
        answer = benchmark.snakemake("--dry-run", "--quiet", timeout=3600)
        seconds.append(time.perf_counter() - started)
        if answer.returncode:
            sys.exit(answer.stdout)
    return median(seconds)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--jobs", type=int, nargs="+", default=[100, 1000, 10_000])
    parser.add_argument("--only", nargs="+", default=["local", "slurm", "plan"])
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="reperf-overhead-") as folder:
        if "plan" in options.only:
            plan(Path(folder, "plan"), options.jobs)
        if "local" in options.only:
            local(Path(folder, "local"), options.runs)
        if "slurm" in options.only:
            slurm(Path(folder, "slurm"), options.runs)


if __name__ == "__main__":
    main()
