"""The plan of a run, or of a search for the largest batch: all that decides it, in one file."""

import os
from collections.abc import Mapping
from functools import cache, cached_property
from hashlib import sha256
from typing import Any

from pydantic import Field

from reperf.builds import build_of
from reperf.config import Run
from reperf.config.words import LARGEST
from reperf.plans.plan_files import Plan
from reperf.systems import System, load_systems
from reperf.systems.workloads import load_workloads
from reperf.validation import Model

BATCH = "{batch_size}"  # what stands in a plan's flags for a batch size that a search finds
# Snakemake sets these to the number of the machine's cores; Slurm does not.
THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
# float32 is float32, not TF32, also what mixed precision leaves in it, unless TF32 is asked for.
# NVIDIA's libraries read the first when they are loaded: with 0 they never compute in TF32,
# whatever a program asks of them. The second undoes what NVIDIA's image of PyTorch sets.
TF32 = ("NVIDIA_TF32_OVERRIDE", "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE")
ITERATIONS = 8
"""Of a trial of a batch size: optimizers and collectives take their memory in two or three."""
SHARE = 97
"""Percent of a memory limit that trials may take. How much address space the same program takes
differs by up to 2.5 % from run to run: what trained within the whole limit may not do so again."""
TIME_LIMITS = 4
"""How long a search for the largest batch may take, in time limits; a trial may take one."""


class BuildPlan(Model):
    """How a run gets its framework."""

    folder: str = Field(description="where the build lies")
    recipe: str = Field(description="SHA-256 of all that it is made from")


class Aside(Model):
    """What a run is told that does not decide how it trains: it is no part of the digest."""

    window: tuple[int, int] = Field(description="the iterations for which power is recorded")
    time_limit: int = Field(description="seconds that a try may take")
    remote: str = Field("", description="what reaches the hosts")
    hosts: tuple[str, ...] = ()
    """the hosts that may train, this machine first; empty: Slurm or this machine"""
    anew: bool = False
    """whether to train even if a try of this plan has come to its end"""


class RunPlan(Plan):
    """plan.json in a run's folder."""

    run: Run = Field(description="as the configuration asks for it")
    build: BuildPlan
    launch: tuple[str, ...]
    """arguments of the build's Python that start the launcher, with {placeholders}"""
    program: tuple[str, ...] = Field(description="what the launcher starts, with its flags")
    serve: tuple[str, ...] = ()
    """likewise, what starts the parameter servers; empty: there are none"""
    server: tuple[str, ...] = Field((), description="what that starts, with its flags")
    variables: dict[str, str]
    """environment variables, beside those of the place where the run starts"""
    trainer: str = Field(description="SHA-256 of the trainer's code, without comments")
    cluster: dict[str, Any] | None
    """the cluster's settings that decide how fast a run is; null on this machine"""
    data: str | None = None
    """SHA-256 of what decides the data set; null: synthetic, or no set of ours"""
    batch: str | None = None
    """the file with the largest batch; null: the batch size is configured"""
    aside: Aside

    @cached_property
    def digest(self) -> str:
        """The SHA-256 of all that decides the run, by which its record names the plan."""
        return sha256(self.model_dump_json(exclude={"aside"}).encode()).hexdigest()

    @property
    def is_search(self) -> bool:
        """Whether it asks for the largest batch, and not for a run with the one that was found."""
        return self.run.batch_size == LARGEST and self.batch is None

    def with_batch(self, size: int) -> "RunPlan":
        """The same plan, with the batch size that was found to be the largest."""

        def sized(words: tuple[str, ...]) -> tuple[str, ...]:
            return tuple(str(size) if word == BATCH else word for word in words)

        return self._but(
            run=self.run.with_batch(size), program=sized(self.program), server=sized(self.server)
        )

    def anew(self) -> "RunPlan":
        """The same plan, of which no ended try is taken up."""
        return self._but(aside=self.aside.model_copy(update={"anew": True}))

    def on_hosts(self, *hosts: str) -> "RunPlan":
        """The same plan on some of its hosts; the first of them starts the run."""
        return self._but(aside=self.aside.model_copy(update={"hosts": hosts}))

    def _but(self, **changes: Any) -> "RunPlan":  # noqa: ANN401 - by its fields
        """A copy with other values; unlike model_copy, it does not keep the text and the digest."""
        same = {name: getattr(self, name) for name in type(self).model_fields}
        return self.model_construct(**same | changes)


def plan_run(
    run: Run,
    *,
    cluster: Mapping[str, Any] | None = None,
    data: str | None = None,
    batch: str | None = None,
    window: tuple[int, int],
    time_limit: int,
    remote: str = "",
    hosts: tuple[str, ...] = (),
) -> RunPlan:
    """Plan a run; RunPlan and Aside say what the arguments are."""
    system, build = load_systems()[run.system], build_of(run)
    program, server = _programs(run.system, run.workload, os.getcwd())  # noqa: PTH109 - pathlib is slow
    flags = trainer_flags(run, system)
    # Ten thousand are made, of what is valid already.
    return RunPlan.model_construct(
        run=run,
        build=BuildPlan(folder=str(build.folder), recipe=build.recipe_digest),
        launch=system.launch,
        program=(program, *flags),
        serve=system.serve,
        server=(server, *flags) if system.serve else (),
        variables=variables_of(run),
        trainer=system.code_digest(run.workload),
        cluster=dict(cluster) if cluster else None,
        data=data,
        batch=batch,
        aside=Aside(window=window, time_limit=time_limit, remote=remote, hosts=hosts),
    )


def run_of_search(run: Run, topology: str) -> Run:
    """What a search for a run's batch size tries, on its suite's topology with the most devices."""
    limit = run.memory_limit
    return run.model_copy(
        update={
            "suite": "largest",
            "memory_limit": limit if limit is None else limit * SHARE // 100,
            "topology": topology,
            "repeat": 1,
            "seed": 1,
            "iterations": ITERATIONS,
            # Runs, too, go on for some time without a look at the loss, which frees memory.
            "print_every": ITERATIONS,
        }
    )


def models_of(found: tuple[Any, ...]) -> tuple[str, ...]:
    """GPUs by their models and memory, in their order."""
    return tuple(f"{gpu.name}, {gpu.memory_bytes} bytes" for gpu in found)


@cache
def _programs(system: str, workload: str, seen_from: str) -> tuple[str, str]:
    """What trains and what serves, by relative paths: the same for many runs."""
    known = load_systems()[system]
    both = known.trainer(workload), known.server(workload)
    program, server = (os.path.relpath(file, seen_from) for file in both)
    return program, server


def naming_flags(system: System, workload: str) -> list[str]:
    """The flags that name what trains; none for a program of the system's own."""
    names = system.named(workload)
    if not names:
        return []
    recipe = load_workloads()[workload].recipe_name
    parts = {key: names.pop(key) for key in system.workloads[workload].parts}
    more = ["--part", *(f"{key}={name}" for key, name in parts.items())] if parts else []
    return [f"--recipe={recipe}", *(f"--{key}={name}" for key, name in names.items()), *more]


def trainer_flags(run: Run, system: System) -> list[str]:
    """The flags that every trainer takes, and those of the run's variants."""
    flags: dict[str, Any] = {
        "workload": run.workload,
        "precision": run.precision,
        "batch-size": run.batch_size if isinstance(run.batch_size, int) else BATCH,
        "iterations": run.iterations,
        "print-every": run.print_every,
        "input": run.input,
        "device": run.device,
        "threads": run.threads,
        "devices-per-node": run.devices_per_node,
        "seed": run.seed,
        "loader-threads": run.loader_threads,
        "data": run.data,
        "memory-limit": run.memory_limit,
        "accumulation": run.accumulation if run.accumulation > 1 else None,
        "shape": tuple(f"{name}={value}" for name, value in run.shape.items()),
    }
    if run.parallel:
        flags |= run.parallel.model_dump(exclude_defaults=True)
    words = naming_flags(system, run.workload)
    for key, value in flags.items():
        if value is not None:
            values = value if isinstance(value, tuple) else (value,)
            words += [f"--{key.replace('_', '-')}", *map(str, values)]
    return words + [flag for variant in system.varied(run.variant) for flag in variant.flags]


def variables_of(run: Run) -> dict[str, str]:
    """The environment variables that decide a run, wherever it starts."""
    given = {"PYTHONUNBUFFERED": "1", **dict.fromkeys(THREADS, str(run.threads))}
    if run.shared_cpus:
        given["CORES"] = "shared"
    if run.device == "cuda":
        given |= dict.fromkeys(TF32, "1" if run.precision == "tf32" else "0")
    return dict(sorted(given.items()))  # their order decides nothing
