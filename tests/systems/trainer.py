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
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import ModuleType

import psutil
from reperf.builds import LockBuild
from reperf.config import Run
from reperf.plans.run_plan import trainer_flags
from reperf.records.run_record import RunRecord
from reperf.systems import SYSTEMS, System
from reperf.systems.workloads import load_workloads

from tests.helpers.shapes import TINY_BERT, TINY_GPT2, TINY_LLAMA, TINY_TRANSFORMER, TINY_WORD2VEC
from tests.systems.train_once import LIMIT_IS_OVER

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
    "llama3-8b": {"shape": TINY_LLAMA, "batch_size": 4},
    "word2vec": {"shape": TINY_WORD2VEC, "batch_size": 50},
    "transformer": {"shape": TINY_TRANSFORMER, "batch_size": 64},
}
"""What is small for workloads, where it is not as SMALL says."""

LIMIT = 600
"""Seconds that a run may take: more than any needs, on a busy machine too."""
LONGEST_WAIT = 120
"""Seconds in which the others of a run say that one hangs; they mean to within twenty."""

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
        self, time_limit: float = LIMIT, more_flags: tuple[str, ...] = (), **changes: object
    ) -> tuple[RunRecord, str]:
        """Train as the workflow does, in a process of its own; returns the run's record and log.

        Args:
            time_limit: seconds.
            more_flags: of the trainer, which no configuration can ask for.
            changes: of the run, beside what is small.
        """
        run = Run.model_validate(small(self.system.id, **changes))
        self.train_once(run.model_dump_json(), time_limit, *more_flags)
        folder = self.folder / run.folder
        log = (folder / "train.log").read_text(errors="replace")
        return RunRecord.read(folder / "run.json"), log

    def train_well(self, **changes: object) -> tuple[RunRecord, str]:
        """Train a run that must end well; takes and gives what `train` does."""
        record, log = self.train(**changes)
        assert (record.status, record.reason) == ("ok", ""), log[-5000:]
        return record, log

    def train_once(self, asked: str, time_limit: float, *more_flags: str, **variables: str) -> None:
        """Train a run, given as JSON, in a process with more variables, which no other outlives."""
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
        self,
        what: signal.Signals,
        rank: int,
        iteration: int,
        victim: str | None = None,
        and_then: Callable[[Path], object] = lambda log: None,
    ) -> Iterator[None]:
        """Within this, the rank of a run gets a signal when it has printed an iteration.

        Args:
            victim: who gets it instead, such as "server 0".
            and_then: is called with the run's log afterwards.
        """
        over = threading.Event()
        started = time.time()

        def watch() -> None:
            while not over.wait(0.1):
                for log in self.folder.rglob("train.log"):
                    text = log.read_text(errors="replace") if started < _written(log) else ""
                    who = rf"rank {rank}(?: \(stage \d+\))?"
                    apart = rf'"iteration": {iteration}, .*"rank": {rank},'  # in its own time
                    if re.search(rf"{who}: iteration {iteration}\b|{apart}", text):
                        started_on = rf"{victim or who}: started on \S+ process (\d+)"
                        os.kill(int(re.search(started_on, text)[1]), what)
                        and_then(log)
                        return

        watcher = threading.Thread(target=watch)
        watcher.start()
        try:
            yield
        finally:
            over.set()
            watcher.join()

    def train_until_one_hangs(
        self,
        rank: int,
        iteration: int,
        victim: str | None = None,
        others_say: str = "nothing new for 20 s",
        **changes: object,
    ) -> tuple[RunRecord, str]:
        """Train with a rank that stops after an iteration, to the run's time limit, LIMIT.

        A start fits into that on a busy machine, too. What is left then is not waited for: the
        limit is over a moment after the others have said that they wait.

        Args:
            victim: who stops instead, such as "server 0".
            others_say: a pattern of what they say; "" if they go on.
            changes: of the run.
        """
        limit_is_over = self.folder / LIMIT_IS_OVER
        over = threading.Event()

        def end(log: Path) -> None:
            known = len(log.read_bytes())
            latest = time.monotonic() + LONGEST_WAIT
            while time.monotonic() < latest and not over.wait(0.1):
                if re.search(others_say.encode(), log.read_bytes()[known:]):
                    over.wait(3)  # who has said so a moment before is missed by then
                    break
            limit_is_over.touch()

        try:
            with self.disturbed(signal.SIGSTOP, rank, iteration, victim, end):
                try:
                    record, log = self.train(LIMIT, **changes)
                finally:
                    over.set()
            assert limit_is_over.exists(), log[-5000:]
        finally:
            limit_is_over.unlink(missing_ok=True)  # the next run has a limit of its own
        return record, log

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

    def said(self, *arguments: str) -> str:
        """What the environment's Python says, which must end well."""
        answer = self.python(*arguments)
        assert answer.returncode == 0, (answer.returncode, answer.stdout)
        return answer.stdout

    def answer(self, code: str) -> object:
        """What a piece of code prints, read as JSON."""
        return json.loads(self.said("-c", code).splitlines()[-1])

    def flags(self, *more_flags: str, **changes: object) -> list[str]:
        """The flags of a small run's ranks, and more."""
        run = Run.model_validate(small(self.system.id, **changes))
        return [*trainer_flags(run, self.system), *more_flags]

    def program(self, *more_flags: str, before: str = "", **changes: object) -> tuple[str, str]:
        """For `python`: the program of a small run, in one process without a launcher.

        Args:
            more_flags: of the trainer.
            before: code that the process runs first.
            changes: of the run.
        """
        path = str(self.system.trainer(changes.get("workload", SMALL["workload"])))
        words = [path, *self.flags(*more_flags, **{"topology": "1n1g"} | changes)]
        start = "runpy.run_path(sys.argv[0], run_name='__main__')"
        return "-c", f"import runpy, sys\n{before}\nsys.argv = {words}\n{start}"


def on_ranks(ranks: int, program: Path, *arguments: str) -> tuple[str, ...]:
    """For `Trainer.python`: a program on a number of ranks, by torch's own launcher."""
    launcher = ("-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={ranks}")
    return *launcher, str(program), *arguments


def small(system: str, **changes: object) -> dict[str, object]:
    """The values of a small run, from which others differ by `changes`."""
    workload = changes.get("workload", SMALL["workload"])
    return SMALL | {"system": system} | SMALL_OF.get(workload, {}) | changes


def trained_by(system: System, data: str | None = None) -> list[str]:
    """The workloads that a system trains data-parallel on a CPU, of one kind of data or of all.

    BERT-large is another shape of BERT-base, which the same code trains: of one recipe, the first.
    """
    workloads = [
        workload
        for workload, can in system.workloads.items()
        if system.trains(workload)
        and system.precisions_of(workload, "cpu")
        and "data" in can.parallel
        if data in (None, load_workloads()[workload].data)
    ]
    first = {load_workloads()[workload].recipe_name: workload for workload in reversed(workloads)}
    return [workload for workload in workloads if workload in first.values()]


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
    found = re.findall(
        rf"^.*\brank {rank}{stage}: iteration \d+, loss ([^\s,]+)", text, re.MULTILINE
    )
    return [float(loss) for loss in found]


def own_steps(text: str, rank: int) -> list[dict]:
    """What a rank that keeps its own time has logged of its iterations."""
    lines = [line for line in text.splitlines() if "tracked_stats" in line]
    events = [json.loads(line.partition(" ")[2]) for line in lines]
    return [one["value"] for one in events if one["metadata"]["rank"] == rank]
