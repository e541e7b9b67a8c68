"""What the workflow adds to the runs: CPU time to plan, time and CPU time of a run, a second call.

    python benchmarks/overhead.py [--only plan local again slurm] [--repeats 7 29] [--runs 20]

Planned are the suites of reports/dlperf.yaml, with so many repeats, in a dry run in which nothing
is there yet; beside it stands a bare Snakefile with as many jobs, inputs and outputs (bare.py). The
two take turns, and only CPU seconds are compared. The runs are of a stand-in whose iterations take
a millisecond, so that nearly all that is spent is the workflow's. Slurm is the test cluster
(tests/slurm/cluster.py), and needs what it needs.
"""

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import psutil
import yaml
from reperf.layout import RUN_RECORD, SUITE_MEASUREMENTS

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "benchmarks"), str(ROOT)]

from bare import BARE, DRY, Job, cpu_of, cpu_of_children, jobs_of, write_bare  # noqa: E402

from tests.helpers.small_benchmark import TOY, Benchmark, new_benchmark  # noqa: E402
from tests.slurm.cluster import SlurmCluster, why_not  # noqa: E402
from tests.slurm.slurm_benchmark import SlurmBenchmark  # noqa: E402

SUITE = TOY["suites"][1] | {
    "name": "overhead",
    "systems": ["stand-in"],
    "shape": {"milliseconds": 1},
}


def new_own_benchmark(folder: Path) -> Benchmark:
    """A benchmark of which nothing is built, and which shares no environment."""
    benchmark = new_benchmark(folder, folder)
    (folder / ".envs").unlink()
    return benchmark


def plan(folder: Path, options: argparse.Namespace) -> None:
    """Print the CPU seconds of planning DLPerf's suites, and a bare Snakefile as large."""
    ours = new_own_benchmark(folder / "ours").folder
    report = yaml.safe_load((ROOT / "reports/dlperf.yaml").read_text(encoding="utf-8"))
    for data in report["data"]:
        data["embedded_on_gpus"] = True  # as nobody has named other data
    for repeats in options.repeats:
        text = yaml.safe_dump(report | {"repeats": repeats}, sort_keys=False)
        (ours / "reports/dlperf.yaml").write_text(text, encoding="utf-8")
        call = ["snakemake", "--profile", "slurm"]
        jobs = jobs_of(ours, call, environment(ours))
        beside_bare(ours, [*call, *DRY], jobs, options.rounds, finished=False)


def beside_bare(
    ours: Path, call: list[str], jobs: list[Job], rounds: int, *, finished: bool
) -> None:
    """Print what a call that plans these jobs costs, and a bare one."""
    bare = ours.with_name(f"bare-{len(jobs)}-{finished}")
    rules = write_bare(bare, jobs, finished)
    seconds = [
        (cpu_of(ours, call, environment(ours)), cpu_of(bare, BARE, dict(os.environ)))
        for _ in range(rounds)
    ]
    mine, others = (median(some) for some in zip(*seconds, strict=True))
    ratio = median(one / other for one, other in seconds)
    runs = sum(path.endswith(RUN_RECORD) for job in jobs for path in job.outputs)
    print(
        f"plan {runs} runs, {len(jobs)} jobs, {'finished' if finished else 'nothing there'}: "
        f"{mine:.2f} CPU-s, bare with {rules} rules {others:.2f} CPU-s, ratio {ratio:.2f}",
        flush=True,
    )


def environment(folder: Path) -> dict[str, str]:
    return Benchmark(folder).environment


def again(folder: Path, options: argparse.Namespace) -> None:
    """Print what a call costs when all is done, and planning that beside a bare Snakefile."""
    benchmark = new_own_benchmark(folder / "ours")
    benchmark.configure(suites=[SUITE | {"repeats": options.runs}])
    jobs = jobs_of(benchmark.folder, benchmark.command()[2:], benchmark.environment)
    answered(benchmark)
    spent = cpu_of_children()
    seconds = answered(benchmark)
    cpu = cpu_of_children() - spent
    print(f"again {options.runs} runs, all done: {seconds:.2f} s, {cpu:.2f} CPU-s", flush=True)
    call = [*benchmark.command()[2:], *DRY]
    beside_bare(benchmark.folder, call, jobs, options.rounds, finished=True)


def local(folder: Path, options: argparse.Namespace) -> None:
    train(new_own_benchmark(folder / "ours"), "local", options.runs, cpu_of_children)


def slurm(folder: Path, options: argparse.Namespace) -> None:
    if reason := why_not():
        sys.exit(f"no Slurm cluster can run here: {reason}")
    with SlurmCluster(folder / "cluster") as cluster:
        here = new_own_benchmark(folder / "ours")
        here.configure(suites=[SUITE])
        answered(here, "--until", "environment")  # the cluster's nodes reach no registry
        benchmark = SlurmBenchmark(here.folder, cluster)
        nodes = [psutil.Process(machine.pid) for machine in cluster.machines]
        train(
            benchmark,
            "Slurm",
            options.runs,
            lambda: cpu_of_children() + sum(map(cpu_of_tree, nodes)),
        )


def train(benchmark: Benchmark, place: str, runs: int, cpu: Callable[[], float]) -> None:
    """Print what a run costs beyond what its trainer takes."""
    costs = []
    # The first call builds, and the second one's measuring and start are in the third one, too.
    for repeats in (1, 2, 3 + runs):
        benchmark.configure(suites=[SUITE | {"repeats": repeats}])
        spent, trained = cpu(), trained_seconds(benchmark)
        seconds = answered(benchmark, SUITE_MEASUREMENTS.format(suite=SUITE["name"]))
        costs.append((seconds, trained_seconds(benchmark) - trained, cpu() - spent))
    seconds, trained, spent = (last - start for start, last in zip(*costs[1:], strict=True))
    print(
        f"{place} {runs} runs: {(seconds - trained) / runs:.2f} s a run beside its trainer's "
        f"{trained / runs:.2f} s, {spent / runs:.2f} CPU-s a run",
        flush=True,
    )


def answered(benchmark: Benchmark, *arguments: str) -> float:
    """Seconds of a call that ends well."""
    started = time.perf_counter()
    command = benchmark.command(*arguments, "--quiet", "all")
    answer = benchmark.call(*command, timeout=3600)  # a process of its own, whose CPU counts
    if answer.returncode:
        sys.exit(answer.stdout)
    return time.perf_counter() - started


def trained_seconds(benchmark: Benchmark) -> float:
    """Seconds of all runs that are there."""
    records = benchmark.folder.glob(f"results/runs/*/*/*/*/{RUN_RECORD}")
    return sum(json.loads(path.read_text())["seconds"] for path in records)


def cpu_of_tree(process: psutil.Process) -> float:
    """CPU seconds of a process, of those below it, and of those that they have waited for."""
    family = [process, *process.children(recursive=True)]
    return sum(sum(member.cpu_times()[:4]) for member in family)


PARTS = {"plan": plan, "again": again, "local": local, "slurm": slurm}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", default=[*PARTS], choices=[*PARTS])
    parser.add_argument("--repeats", type=int, nargs="+", default=[7, 29], help="of 344 cells")
    parser.add_argument("--runs", type=int, default=20, help="of the stand-in")
    parser.add_argument("--rounds", type=int, default=3, help="of planning")
    parser.add_argument("--folder", type=Path, help="where to work, instead of the usual temporary")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="reperf-overhead-", dir=options.folder) as scratch:
        for name in options.only:
            folder = Path(scratch, name)
            folder.mkdir()
            PARTS[name](folder, options)


if __name__ == "__main__":
    main()
