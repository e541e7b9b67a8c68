"""A bare Snakefile that is as large as a workflow, and what planning either costs.

It has as many jobs as Snakemake says that the workflow has, each with as many inputs and outputs,
which depend on each other alike: without parameters, functions, logs or messages.
"""

import json
import os
import resource
import shutil
import subprocess
import sys
from collections import Counter, defaultdict
from pathlib import Path
from typing import NamedTuple

PLUGINS = Path(__file__).with_name("plugins")
DRY = ("--dry-run", "--quiet")
# What the profiles set, too.
BARE = ["snakemake", "--nolock", "--rerun-incomplete", *DRY]


class Job(NamedTuple):
    """A job as Snakemake names it."""

    rule: str
    inputs: list[str]
    outputs: list[str]


def jobs_of(folder: Path, command: list[str], environment: dict[str, str]) -> list[Job]:
    """The jobs that a call of Snakemake would run in a folder, which it leaves as it is."""
    said = folder.with_name(f"{folder.name}.jobs")
    path = os.pathsep.join(filter(None, (environment.get("PYTHONPATH"), str(PLUGINS))))
    told = environment | {"PLANNED": str(said), "PYTHONPATH": path}
    cpu_of(folder, [*command, "--dry-run", "--logger", "reperf", "planned"], told)
    return [Job(*json.loads(line)) for line in said.read_text(encoding="utf-8").splitlines()]


def cpu_of(folder: Path, command: list[str], environment: dict[str, str]) -> float:
    """CPU seconds of a call in a folder; what it leaves there goes: the next one is its equal."""
    before, spent = set(folder.iterdir()), cpu_of_children()
    answer = subprocess.run(
        [sys.executable, "-m", *command],
        cwd=folder,
        env=environment,
        check=False,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    if answer.returncode:
        sys.exit(answer.stdout)
    for left in set(folder.iterdir()) - before:
        shutil.rmtree(left)
    return cpu_of_children() - spent


def cpu_of_children() -> float:
    """CPU seconds of all that this process has started and waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def write_bare(folder: Path, jobs: list[Job], finished: bool) -> int:
    """Write a bare Snakefile for so many jobs, and the files that it stands on.

    Args:
        folder: where to; it is made.
        jobs: of the workflow that it is to resemble.
        finished: whether what the jobs make is there, too.

    Returns:
        How many rules it has: one for all jobs of a rule that read the same files, but for
        files of their own.
    """
    made = {path for job in jobs for path in job.outputs}
    readers = Counter(path for job in jobs for path in job.inputs)
    groups = defaultdict(list)
    for job in jobs:
        shared = tuple(path for path in job.inputs if path in made or readers[path] > 1)
        own = len(job.inputs) - len(shared)
        groups[job.rule, shared, own, len(job.outputs)].append(job)
    names = {
        path: f"made/{number}/{at}/{i}"
        for number, group in enumerate(groups.values())
        for at, job in enumerate(group)
        for i, path in enumerate(job.outputs)
    }
    sources, rules = set(), []
    for number, ((_, shared, own, outputs), group) in enumerate(groups.items()):
        for path in shared:
            names.setdefault(path, f"shared/{len(names)}")
        at = "{at}" if len(group) > 1 else "0"
        inputs = [names[path] for path in shared]
        inputs += [f"own/{number}/{at}/{i}" for i in range(own)]
        sources |= {path.format(at=each) for path in inputs for each in range(len(group))}
        output = [f"made/{number}/{at}/{i}" for i in range(outputs)]
        rule = f"rule r{number}:\n    input: {inputs}\n"
        if output:
            rules.append(f"{rule}    output: {output}\n    shell: 'true'\n")
        else:
            rules.insert(0, rule)  # the first one is the default target
    there = sources | set(names.values())
    for path in there if finished else (one for one in there if not one.startswith("made/")):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).touch()
        os.utime(folder / path, (0, 0))  # none is newer than another
    (folder / "Snakefile").write_text("\n".join(rules), encoding="utf-8")
    return len(rules)
