"""A small benchmark: the whole workflow, with a trainer of numpy that does what it is told."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import psutil
import yaml

from tests.helpers import fork_server
from tests.helpers.waiting import wait_until

ROOT = Path(__file__).resolve().parents[2]

# All that a checkout needs to make a report; git, which could list it, need not be installed.
WORKFLOW = (
    *("Makefile", "README.md", "Snakefile", "pyproject.toml", "requirements.txt"),
    *("config.yaml", "site.yaml"),
    *("data/published", "docs", "envs", "hosts", "profiles", "reports", "slurm", "workflow"),
)

PROGRAMS = ("trainers/train.py", "trainers/serve.py")
"""What trains or serves."""
HERE = "{}.{}".format(*sys.version_info)
"""The Python that tests, as a lock names it."""

# Everything else is as in config.yaml.
SMALL = {
    "title": "a small benchmark",
    "topologies": ["1n1g", "1n2g"],
    "repeats": 2,
    "iterations": 4,
    "window": {"warmup": 2, "measured": 2},
    "print_every": 1,
    "time_limit": 120,
    "device": "cpu",
    "data": {"name": "embedded", "parts": 4},
    "suites": [
        {
            "name": "small",
            "workload": "resnet50",
            "precision": "fp32",
            "batch_size": 2,
            "shape": {"image_size": 32},
            "systems": ["pytorch"],
        },
        {
            "name": "small-synthetic",
            "workload": "resnet50",
            "precision": "amp",
            "batch_size": 2,
            "shape": {"image_size": 32},
            "input": "synthetic",
            "topologies": ["1n1g"],
            "repeats": 1,
            "systems": ["pytorch", "oneflow"],
        },
    ],
}
"""A report at shapes that PyTorch trains in seconds."""

_TOY = {"workload": "toy", "precision": "fp32", "shape": {}}
TOY = SMALL | {
    "suites": [
        SMALL["suites"][0] | _TOY | {"systems": ["stand-in"]},
        SMALL["suites"][1] | _TOY | {"systems": ["stand-in", "stand-in-16"]},
    ]
}
"""The same by the stand-in; the toy's shape says how long a run takes, and what goes wrong."""

STAND_IN = Path(__file__).with_name("stand_in")
"""A system, a framework and a workload that a small benchmark has besides those of the checkout."""


@dataclass
class Benchmark:
    """A copy of the workflow with a small report, in a folder that a test may spoil."""

    folder: Path

    def configure(self, **changes: object) -> None:
        """Write config.yaml: the small report with some top-level keys changed."""
        text = yaml.safe_dump(TOY | changes, sort_keys=False)
        (self.folder / "config.yaml").write_text(text, encoding="utf-8")

    def copied(self, folder: Path) -> "Benchmark":
        """A copy in another folder."""
        shutil.copytree(self.folder, folder, symlinks=True, copy_function=_copy)
        return Benchmark(folder)

    def take_over(self, begun: Path) -> None:
        """Take what another benchmark has that no run decides: published figures and records."""
        for name in ("figures/published", "data/embedded", ".snakemake/metadata"):
            shutil.copytree(begun / name, self.folder / name, copy_function=_copy)

    def command(self, *arguments: str) -> list[str]:
        return [sys.executable, "-m", "snakemake", *arguments]

    @property
    def environment(self) -> dict[str, str]:
        # The copy's own library, not the installed one: tests edit it.
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        return {**os.environ, "PYTHONPATH": str(self.folder / "workflow"), "PATH": path}

    @property
    def enter(self) -> list[str]:
        """What begins a command line that runs where this benchmark does."""
        return []

    def snakemake(self, *arguments: str, timeout: float = 900) -> subprocess.CompletedProcess:
        return self.forked(*self.command(*arguments)[2:], timeout=timeout)

    def forked(self, *words: str, timeout: float = 900) -> subprocess.CompletedProcess:
        """Call Snakemake or reperf, in a fork of a process that has imported what it needs."""
        return fork_server.run([*words], self.folder, self.environment, timeout, self.enter)

    def call(self, *command: str, timeout: float = 900) -> subprocess.CompletedProcess:
        if command[0] == "reperf":
            return self.forked(*command, timeout=timeout)
        with self.started(*command) as process:
            output, _ = process.communicate(timeout=timeout)
        return subprocess.CompletedProcess(command, process.returncode, output)

    def made(self, *arguments: str, **options: float) -> str:
        """What a call of Snakemake says that must end well."""
        answer = self.snakemake(*arguments, **options)
        assert answer.returncode == 0, answer.stdout
        return answer.stdout

    def refused(self, *arguments: str) -> str:
        """What a call of Snakemake says that must fail, without a traceback."""
        answer = self.snakemake(*arguments)
        assert answer.returncode == 1, answer.stdout
        assert "Traceback" not in answer.stdout
        return answer.stdout

    def said(self, *command: str) -> str:
        """What a command says that must end well."""
        answer = self.call(*command)
        assert answer.returncode == 0, answer.stdout
        return answer.stdout

    popen = staticmethod(subprocess.Popen)

    @contextmanager
    def started(self, *command: str) -> Iterator[subprocess.Popen]:
        """A command of a session of its own, as in a terminal; it ends with the block."""
        process = self.popen(
            command,
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        try:
            yield process
        finally:
            process.kill()
            process.communicate()

    def trainers(self) -> list[psutil.Process]:
        """The processes that train in this folder, on whatever node."""
        return [
            process
            for process in psutil.process_iter(["cwd", "cmdline"])
            if process.info["cwd"] == str(self.folder)
            and any(word.endswith(PROGRAMS) for word in process.info["cmdline"] or ())
        ]

    def wait_until_nobody_trains(self) -> None:
        wait_until(lambda: not self.trainers(), f"the last trainer in {self.folder} to end")

    def planned(self, *arguments: str) -> dict[str, int]:
        """The jobs that a call would run: rule name -> count, without `all`."""
        answer = self.snakemake(*arguments, "--dry-run", "--quiet", "rules")
        assert answer.returncode == 0, answer.stdout
        table = answer.stdout.partition("-----")[2].splitlines()[1:]
        rows = [line.split() for line in table]
        jobs = {row[0]: int(row[1]) for row in rows if len(row) == 2 and row[1].isdigit()}
        return {rule: n for rule, n in jobs.items() if rule not in ("all", "total")}


def _copy(source: str, target: str) -> None:
    """Copy a file, or link it if it is large and no test edits it: an image, a part of records."""
    data = source.endswith(".JPEG") or Path(source).name.startswith("part-")
    (os.link if data else shutil.copy2)(source, target)


def new_benchmark(folder: Path, environments: Path) -> Benchmark:
    """Copy the workflow and the stand-in into a folder, and configure the small report.

    Args:
        folder: which is made.
        environments: where those of the systems are, or are built.
    """
    environments.mkdir(parents=True, exist_ok=True)
    for name in WORKFLOW:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).is_dir():
            # With bytecode, which a Python takes only for the file that it was made from.
            built = shutil.ignore_patterns("*.egg-info")
            shutil.copytree(ROOT / name, folder / name, ignore=built)
        else:
            shutil.copy2(ROOT / name, folder / name)
    shutil.copytree(STAND_IN, folder, dirs_exist_ok=True)
    # Drawing all published tables takes 15 seconds; tests/unit draws them.
    tables = folder / "data/published/tables.yaml"
    head, first, *_, stages, last = re.split(r"(?m)^(?=  - id: )", tables.read_text())
    tables.write_text(head + first + stages + last)
    described = folder / "workflow/systems/stand-in/system.yaml"
    described.write_text(described.read_text().replace('"3.11"', f'"{HERE}"'))
    numpy, idna = (f"{name}=={version(name)}" for name in ("numpy", "idna"))
    (folder / "envs/stand-in.txt").write_text(f"{numpy}\n{idna}\n")
    (folder / "envs/stand-in.overlay.txt").write_text(f"{idna}  # idna\n")
    (folder / "envs/stand-in.image.yaml").write_text("image: stand-in\ntag: none\n")
    (folder / ".envs").symlink_to(environments)
    benchmark = Benchmark(folder)
    benchmark.configure()
    return benchmark
