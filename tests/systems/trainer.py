"""A system's trainer as its tests run it: real processes, in the system's own environment."""

import json
import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from reperf.systems import SYSTEMS


@dataclass
class Trainer:
    """One system in its environment."""

    system: str
    environment: Path

    def python(self, *arguments: str, **variables: str) -> subprocess.CompletedProcess:
        """Run the environment's Python, where the trainer's modules can be imported."""
        return self._run([str(self.environment / "bin/python"), *arguments], variables)

    def answer(self, code: str) -> object:
        """What a piece of code prints, read as JSON."""
        said = self.python("-c", code)
        assert said.returncode == 0, said.stdout
        return json.loads(said.stdout.splitlines()[-1])

    def launch(self, *launcher: str, flags: Sequence[str]) -> subprocess.CompletedProcess:
        """Train with the framework's own launcher."""
        program = str(self.environment / "bin" / launcher[0])
        trainer = str(SYSTEMS / self.system / "train.py")
        return self._run([program, *launcher[1:], trainer, *flags], {})

    def _run(self, command: list[str], variables: dict) -> subprocess.CompletedProcess:
        path = f"{SYSTEMS}{os.pathsep}{SYSTEMS / self.system}"
        return subprocess.run(
            command,
            check=False,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=240,
            env={**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1", **variables},
        )


def step_log(text: str) -> tuple[dict, list[dict]]:
    """What a trainer's log says: its last value of each key, and its printed iterations."""
    mark = ":::MLLOG "
    events = [
        json.loads(line.removeprefix(mark)) for line in text.splitlines() if line.startswith(mark)
    ]
    steps = [event["value"] for event in events if event["key"] == "tracked_stats"]
    return {event["key"]: event["value"] for event in events}, steps
