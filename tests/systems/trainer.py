"""A system's trainer as its tests run it: real processes, in the system's own environment."""

import json
import os
import re
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import ModuleType

import psutil
from reperf.builds import LockBuild
from reperf.config import Run
from reperf.systems import SYSTEMS, System, load_workloads
from reperf.training.record import RunRecord
from shapes import TINY_BERT, TINY_GPT2, TINY_TRANSFORMER, TINY_WORD2VEC

# A run of seconds on two processes; what tests change, they say.
SMALL = {
    "suite": "small",
    "variant": None,
    "workload": "resnet50",
    "precision": "fp32",
    "batch_size": 8,
    "topology": "1n2g",
    "repeat": 1,
    "iterations": 6,
    "print_every": 1,
    "shape": {"image_size": 64},
    "input": "synthetic",
    "data": None,
    "device": "cpu",
    "threads": 1,
    "seed": 1,
}
SMALL_OF = {
    "bert-base": {"shape": TINY_BERT, "batch_size": 4},
    "gpt2-124m": {"shape": TINY_GPT2, "batch_size": 4},
    "word2vec": {"shape": TINY_WORD2VEC, "batch_size": 50},
    "transformer": {"shape": TINY_TRANSFORMER, "batch_size": 64},
}
"""What is small for workloads, where it is not as SMALL says."""

SECONDS_TO_MISS_ONE = 20
"""How long the other ranks of a run need, on a busy machine too, to say that one hangs."""

TRAIN_ONCE = Path(__file__).with_name("train_once.py")

# By this environment variable every process of a run is known, whatever has become of its parents.
MARK = "REPERF_TESTED_IN"


@dataclass
class Trainer:
    """One system in its environment, and a folder to train in."""

    system: System
    folder: Path

    @property
    def environment(self) -> Path:
        return self.folder / LockBuild(self.system, "cpu").folder

    def train(
        self, time_limit: float = 600, more_flags: tuple[str, ...] = (), **changes: object
    ) -> tuple[RunRecord, str]:
        """Train as the workflow does, in a process of its own; returns the run's record and log.

        Args:
            time_limit: seconds.
            more_flags: of the trainer, which no configuration can ask for.
            changes: of the run, beside what is small.

        Raises:
            AssertionError: a process outlived the run.
        """
        run = Run.model_validate(small(self.system.id, **changes))
        self.train_once(run.model_dump_json(), time_limit, *more_flags)
        folder = self.folder / run.folder
        log = (folder / "train.log").read_text(errors="replace")
        return RunRecord.read(folder / "run.json"), log

    def train_once(self, asked: str, time_limit: float, *more_flags: str, **variables: str) -> None:
        """Train a run, given as JSON, in a process that has more environment variables.

        Raises:
            AssertionError: a process outlived the run.
        """
        subprocess.run(
            [sys.executable, str(TRAIN_ONCE), asked, str(time_limit), *more_flags],
            check=True,
            cwd=self.folder,
            env={**os.environ, **variables, MARK: str(self.folder)},
        )
        marked = psutil.process_iter(["environ"])
        assert not [p for p in marked if (p.info["environ"] or {}).get(MARK) == str(self.folder)]

    @contextmanager
    def disturbed(
        self, what: signal.Signals, rank: int, iteration: int, victim: str | None = None
    ) -> Iterator[list[float]]:
        """Within this, the rank of a run gets a signal when it has printed an iteration.

        It yields a list, into which comes how many seconds the run had lasted by then.

        Args:
            what: the signal.
            rank: which rank.
            iteration: which iteration.
            victim: who gets it instead, such as "server 0".
        """
        over = threading.Event()
        started, hit = time.time(), []

        def watch() -> None:
            begun = None
            while not over.wait(0.1):
                logs = [log for log in self.folder.rglob("train.log") if started < _written(log)]
                begun = begun or (logs and time.monotonic())
                for log in logs:
                    text = log.read_text(errors="replace")
                    who = rf"rank {rank}(?: \(stage \d+\))?"
                    apart = rf'"iteration": {iteration}, .*"rank": {rank},'  # in its own time
                    if re.search(rf"{who}: iteration {iteration}\b|{apart}", text):
                        started_on = rf"{victim or who}: started on \S+ process (\d+)"
                        process = re.search(started_on, text)
                        os.kill(int(process[1]), what)
                        hit.append(time.monotonic() - begun)
                        return

        watcher = threading.Thread(target=watch)
        watcher.start()
        try:
            yield hit
        finally:
            over.set()
            watcher.join()

    def train_until_one_hangs(
        self,
        limit: int,
        rank: int,
        iteration: int,
        victim: str | None = None,
        seconds_to_miss: float = SECONDS_TO_MISS_ONE,
        **changes: object,
    ) -> tuple[RunRecord, str, int]:
        """Train with a rank that stops after an iteration, to the run's time limit.

        Args:
            limit: seconds; a longer one is taken where a busy machine comes so far too late in it.
            rank: which rank.
            iteration: which iteration.
            victim: who stops instead, such as "server 0".
            seconds_to_miss: how much of the limit must be left then.
            changes: of the run.

        Returns:
            Its record, its log and its limit.
        """
        while True:
            with self.disturbed(signal.SIGSTOP, rank, iteration, victim) as hit:
                record, log = self.train(limit, **changes)
            if hit and hit[0] + seconds_to_miss < limit:
                return record, log, limit
            assert record.status == "timeout", log[-5000:]  # and no fault of another kind
            limit *= 2

    def python(self, *arguments: str) -> subprocess.CompletedProcess:
        """Run the environment's Python, where the trainer's modules can be imported."""
        return subprocess.run(
            [str(self.environment / "bin/python"), *arguments],
            check=False,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=600,
            env={**os.environ, "PYTHONPATH": str(SYSTEMS.parent), "OMP_NUM_THREADS": "1"},
        )

    def answer(self, code: str) -> object:
        """What a piece of code prints, read as JSON."""
        said = self.python("-c", code)
        assert said.returncode == 0, said.stdout
        return json.loads(said.stdout.splitlines()[-1])


def small(system: str, **changes: object) -> dict[str, object]:
    """The values of a small run, from which others differ by `changes`."""
    workload = changes.get("workload", SMALL["workload"])
    return SMALL | {"system": system} | SMALL_OF.get(workload, {}) | changes


def trained_by(system: System, data: str | None = None) -> list[str]:
    """The workloads that a system trains data-parallel on a CPU, in the order of its system.yaml.

    One that is like another is trained by the same code, as a test of `like` has it.

    Args:
        data: a kind of data set; None for all.
    """
    return [
        workload
        for workload, can in system.workloads.items()
        if system.trains(workload)
        and system.precisions_of(workload, "cpu")
        and "data" in can.parallel
        if data in (None, load_workloads()[workload].data)
        and load_workloads()[workload].like is None
    ]


def recipe_of(workload: str) -> ModuleType:
    return import_module(f"trainers.recipes.{load_workloads()[workload].recipe_file.stem}")


def _written(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except FileNotFoundError:
        return 0.0


@contextmanager
def limited_memory(gigabytes: int) -> Iterator[None]:
    """Within this, no new process may take more address space."""
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (gigabytes << 30, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def step_log(text: str) -> tuple[dict, list[dict]]:
    """What a trainer's log says: its last value of each key, and its printed iterations."""
    mark = ":::MLLOG "
    events = [
        json.loads(line.removeprefix(mark)) for line in text.splitlines() if line.startswith(mark)
    ]
    steps = [event["value"] for event in events if event["key"] == "tracked_stats"]
    return {event["key"]: event["value"] for event in events}, steps


def losses(text: str, rank: int) -> list[float]:
    """The losses that a rank printed."""
    if rank == 0:
        return [step["loss"] for step in step_log(text)[1]]
    stage = r"(?: \(stage \d+\))?"
    found = re.findall(rf"^.*\brank {rank}{stage}: iteration \d+, loss (\S+)", text, re.MULTILINE)
    return [float(loss) for loss in found]
