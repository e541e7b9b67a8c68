"""A small real benchmark on the test cluster."""

import json
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import psutil
import yaml

from tests.helpers.shapes import TINY_BERT
from tests.helpers.small_benchmark import TOY, Benchmark, new_benchmark
from tests.helpers.waiting import wait_for_text
from tests.slurm.cluster import SlurmCluster, inside

SUITE = TOY["suites"][0] | {"input": "synthetic"}
WORDS = {
    "name": "words",
    "kind": "text",
    "vocabulary_size": TINY_BERT["vocabulary"],
    "parts": 4,
} | {key: TINY_BERT[key] for key in ("sequence_length", "max_predictions")}
"""The embedded text, for a small BERT."""
SOON = (
    "--slurm-shell-init-seconds-before-status-checks=1",
    "--seconds-between-status-checks=1",
)
"""Runs take seconds: no look at a job need wait as long as on a real cluster."""
LONG = 100  # seconds that a run may need before it can be disturbed, on a busy machine


@dataclass
class SlurmBenchmark(Benchmark):
    """A copy of the workflow whose report is for the test cluster."""

    cluster: SlurmCluster
    entry: str = "stand-in"
    """Whose runs are looked at."""

    def configure(self, **changes: object) -> None:
        """Write the small report and the cluster's site.yaml, with some top-level keys changed."""
        there = {"nodes": len(self.cluster.nodes), "devices_per_node": self.cluster.gpus}
        # Eight processes of one machine, which may be busy, are all nodes' devices.
        report = TOY | {"suites": [SUITE], "cluster": there, "time_limit": 300} | changes
        site = {"cluster": report.pop("cluster")}
        for name, content in (("reports/dlperf.yaml", report), ("site.yaml", site)):
            text = yaml.safe_dump(content, sort_keys=False)
            (self.folder / name).write_text(text, encoding="utf-8")

    def command(self, *arguments: str) -> list[str]:
        return [sys.executable, "-m", "snakemake", "--profile", "slurm", *SOON, *arguments]

    @property
    def enter(self) -> list[str]:
        return inside(self.cluster.controller, [])

    def popen(self, command: Sequence[str], **options: Any) -> subprocess.Popen:
        """Start a command on the cluster's login node."""
        return self.cluster.popen(command, **options)

    def run_folder(self, topology: str, repeat: int = 1) -> Path:
        """Of the only run on a topology by the entry that is looked at, in whatever suite."""
        (suite,) = self.folder.glob(f"results/runs/*/{self.entry}/{topology}")
        return suite / str(repeat)

    def record(self, topology: str, repeat: int = 1) -> dict:
        return json.loads((self.run_folder(topology, repeat) / "run.json").read_text())

    def cells(self) -> pd.DataFrame:
        """The cells of the entry that is looked at, by topology."""
        cells = pd.read_csv(self.folder / "results/summary.csv")
        return cells[cells["system"] == self.entry.partition("+")[0]].set_index("topology")

    def wait_for_log(self, topology: str, pattern: str, repeat: int = 1, attempt: int = 1) -> str:
        """Wait until a try's log holds a pattern; returns its first group."""
        log = f"results/runs/*/{self.entry}/{topology}/{repeat}/tries/{attempt}/train.log"
        return wait_for_text(self.folder, log, pattern, LONG)[1]

    def job_of(self, topology: str, repeat: int = 1) -> str:
        """The number of the Slurm job that trains this now."""
        jobs = self.cluster.ask("squeue", "--noheader", "--states=running", "--format=%i %k")
        (job,) = [line.split()[0] for line in jobs if line.endswith(f"_{topology}_{repeat}")]
        return job

    def rank(self, topology: str, rank: int) -> psutil.Process:
        """The process of one rank, once it trains."""
        said = rf"rank {rank}: iteration (2)\b" if rank else r'"iteration": (2)\b'
        self.wait_for_log(topology, said)
        record = json.loads((self.run_folder(topology) / "tries/1/run.json").read_text())
        first = re.search(r"--first=([^ ,]+)", " ".join(record["command"]))[1]
        wanted = {"RANK": str(rank), "FIRST": first}
        return next(
            process for process in self.trainers() if wanted.items() <= process.environ().items()
        )


def new_slurm_benchmark(folder: Path, environments: Path, cluster: SlurmCluster) -> SlurmBenchmark:
    """Copy the workflow into a folder that all nodes see."""
    copy = new_benchmark(folder, environments)
    benchmark = SlurmBenchmark(copy.folder, cluster)
    benchmark.configure()
    return benchmark
