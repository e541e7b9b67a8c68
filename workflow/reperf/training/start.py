"""How a launcher is started: in an environment, or in a container of an image."""

import os
import shutil
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from subprocess import TimeoutExpired

from trainers.contract.compilers import COMPILED
from trainers.contract.meeting import PARTING

from reperf.building.code import digest_of_code
from reperf.builds import (
    RECORD,
    Build,
    Built,
    ImageBuild,
    SiteBuild,
    build_of,
    why_build,
    why_not_as_found,
)
from reperf.builds.engines import VISIBLE_GPUS, start_in, variables_inside
from reperf.builds.installed import differing
from reperf.builds.site_python import (
    LOOK_SECONDS,
    Listed,
    look,
    read_listed,
    variables_outside,
    words_of_look,
)
from reperf.builds.steps import do
from reperf.config import Run
from reperf.errors import ReperfError
from reperf.layout import ROOT
from reperf.plans.run_plan import TF32, THREADS, RunPlan
from reperf.programs import ended
from reperf.records.shell import read_variables
from reperf.systems import MODULE_STARTER, TRAINERS, load_systems
from reperf.training.launch import Command, Outcome, launch
from reperf.training.places import Place
from reperf.training.tries import this_call

# What srun itself needs; the image must see no more of this machine's environment.
_OF_SRUN = ("HOME", "LANG", "LOGNAME", "PATH", "TMPDIR", "USER")
_SECONDS_TO_REMOVE = 20.0  # how long an engine may take to end and remove a container
_COMPILED = Path(".cache/compiled")


@dataclass(frozen=True)
class Start:
    """The launchers of a run, ready to be started on all nodes."""

    trainers: Command  # the command that starts them
    servers: Command | None  # that of the parameter servers; None: there are none
    variables: Mapping[str, str]
    """Those that are set for the trainers, as the run's record holds them."""
    inherited: Mapping[str, str] = field(default_factory=dict)
    """Those of the shell that reach the trainers, and that what they run on reads."""

    def launched(self, place: Place, run: Run, *, log: Path, time_limit: float) -> Outcome:
        """Start the launchers, wait for their end or end them, leave no container; see `launch`."""
        both = [command for command in (self.trainers, self.servers) if command]
        containers = [command for command in both if command.clean_up]
        removed = _SECONDS_TO_REMOVE if containers else 0.0
        try:
            return launch(
                self.trainers,
                self.servers,
                log=log,
                time_limit=time_limit,
                world_size=run.world_size,
                servers_in_all=run.servers_in_all,
                lines=place.lines,
                seconds_to_end=max(place.seconds_to_end, removed),
            )
        finally:
            for command in containers:
                with suppress(OSError, TimeoutExpired):
                    ended(command.clean_up, command.environment, _SECONDS_TO_REMOVE)


def start_of(plan: RunPlan, place: Place, program: Sequence[str]) -> Start:
    """How a run's launchers start their programs: `program`, once for each rank.

    Raises:
        ReperfError: the run's build is missing, has changed, or differs on a further node; or the
            trainer is not the planned one.
    """
    run = plan.run
    build = build_of(run)
    inside = isinstance(build, ImageBuild)
    if why := why_not_planned(plan):
        raise ReperfError(why)
    if isinstance(build, SiteBuild):
        _check_nodes(build, place)
    variables = {"PYTHONPATH": str(TRAINERS.parent), **plan.variables, **place.variables}
    # No place may turn float32 into TF32.
    variables |= {name: plan.variables[name] for name in TF32 if name in plan.variables}
    words, variables[PARTING] = placeholders(run, place)
    if compiled := compiled_folder(run):
        variables[COMPILED] = str(compiled)
    read = run.data
    if read is not None:
        run = run.model_copy(update={"data": place.staged(read)})

    def reading(flags: Sequence[str]) -> list[str]:
        return [str(run.data) if word == read else word for word in flags]

    trained = [*launcher(plan.launch, words), *reading(program)]
    trainers, servers = _command(run, build, place, trained, variables), None
    if run.servers:
        for_servers = variables | dict.fromkeys(THREADS, str(run.servers.threads))
        served = [*launcher(plan.serve, words), *reading(plan.server)]
        servers = _command(run, build, place, served, for_servers)
    if inside:
        return Start(trainers, servers, variables_inside(variables))
    # Modules set more than this process has.
    there = build.listed.variables if isinstance(build, SiteBuild) else trainers.environment
    reached = read_variables(there)
    inherited = {name: value for name, value in reached.items() if name not in variables}
    return Start(trainers, servers, variables, inherited)


def why_not_planned(plan: RunPlan) -> str:
    """Why a run would not train by what its plan names, now; "" if it would.

    Asked where a run starts and at its end: meanwhile people pull, or upgrade a package.
    """
    build = build_of(plan.run)
    if isinstance(build, SiteBuild):
        planned = Built.read(Path(plan.build.folder))
        why = why_not_as_found(planned, look(build.environment, build.system))
        return f"{why}; the next call plans the run anew" if why else _why_not_the_code(plan)
    looked = isinstance(build, ImageBuild) or (build.folder / RECORD).exists()
    if looked and (why := why_build(build)):
        return f"{why}; once {build.folder}/{RECORD} is removed, the next call makes it"
    return _why_not_the_code(plan)


def _why_not_the_code(plan: RunPlan) -> str:
    code = load_systems()[plan.run.system].code(plan.run.workload)
    try:
        # Not the system's own digest, which is that of the first time.
        if digest_of_code(code, ROOT) == plan.trainer:
            return ""
        last = max(code, key=lambda file: file.stat().st_mtime)
    except FileNotFoundError as error:
        return f"{error.filename}: is gone, and the plan's trainer has it"
    return (
        f"{last.relative_to(ROOT)}: the trainer's code, of which this file changed last, is not "
        "that of the plan; the next call plans the run anew"
    )


def _check_nodes(build: SiteBuild, place: Place) -> None:
    """Refuse an environment that is another one on one of a run's further nodes."""
    others = place.nodes[1:]
    command = place.on_others(words_of_look(build.environment, build.system))
    if not command:
        return
    named = f"environment {build.environment}"
    variables = {"PYTHONPATH": str(TRAINERS.parent)}
    outside = variables_outside(build.environment, place.environment, variables)
    trouble = f"{named}: cannot be looked into on {', '.join(others)}"
    printed = do(command, trouble, outside, LOOK_SECONDS).splitlines()
    answers = [read_listed(line) for line in printed if line.startswith("{")]
    unlike = why_nodes_differ(answers, build.listed, place.nodes)
    if unlike:
        raise ReperfError(f"{named}: {unlike}; allowed: the same packages on every node")


def why_nodes_differ(answers: Iterable[Listed], first: Listed, nodes: Sequence[str]) -> str:
    """Which of some nodes has another environment than the first one, and how; "" if none has."""
    listed = {answer.node: answer for answer in answers}
    for node in nodes[1:]:
        if node not in listed:
            return f"{node} did not say what it has"
        if differ := differing(listed[node].contents, first.contents):
            return f"{node} has other packages than {nodes[0]}: {differ}"
    return ""


def _command(
    run: Run, build: Build, place: Place, words: Sequence[str], variables: Mapping[str, str]
) -> Command:
    """The command that starts the build's Python with some words, at a place."""
    start = start_in(
        build,
        [str(build.python), *words],
        folder=Path.cwd(),
        variables=variables,
        mounts=_data_outside(run),
        gpus=VISIBLE_GPUS if run.device == "cuda" else None,
    )
    outside = place.environment
    if start.srun_options:
        outside = {
            name: value
            for name, value in outside.items()
            if name in _OF_SRUN or name.startswith("SLURM_")
        }
    environment = {**outside, **start.variables}
    if isinstance(build, SiteBuild):
        environment = variables_outside(build.environment, outside, start.variables)
    if not isinstance(build, ImageBuild):
        others = environment.get("PATH", os.defpath)
        if build.python.name != str(build.python):
            others = f"{build.python.parent.absolute()}{os.pathsep}{others}"
        environment["PATH"] = others
        if place.temporary:
            environment["TMPDIR"] = place.temporary
    command = place.start(start.command, start.srun_options, shared=run.servers is not None)
    # Other nodes remove their own.
    clean_up = [word.replace("{node_rank}", "0") for word in start.clean_up]
    return Command(command, environment, clean_up)


def compiled_folder(run: Run) -> Path | None:
    """The folder in which this call's repeats of a run's cell share compiled programs.

    What earlier calls left is removed: each call compiles at least once for each cell, so that the
    most memory of its runs counts the compiler's. None for systems that share none, on GPUs, where
    each repeat must find the fastest kernels for itself, and outside a call of Snakemake.
    """
    call = this_call()
    if run.device != "cpu" or not call or not load_systems()[run.system].shares_compiled:
        return None
    folder = _COMPILED / sha256(call.encode()).hexdigest()[:12]
    for other in _COMPILED.glob("*"):
        if other != folder:
            shutil.rmtree(other, ignore_errors=True)
    return folder / run.suite / run.entry / run.topology


def placeholders(run: Run, place: Place) -> tuple[dict[str, object], str]:
    """What placeholders of launch words stand for, and the host:port where rank 0 waits at last."""
    of_node = run.servers.per_node if run.servers else 0
    # Where there are no servers, the launchers of several nodes count on from the first port.
    port, *others, parting = place.ports(2 + of_node + run.devices_per_node)
    hosts = (place.head, *place.nodes[1:])
    words = {
        "nodes": run.nodes,
        "node_rank": "{node_rank}",
        "devices_per_node": run.devices_per_node,
        "world_size": run.world_size,
        "threads": run.threads,
        "hosts": ",".join(hosts),
        "head": place.head,
        "port": port,
        "servers": ",".join(f"{host}:{number}" for host in hosts for number in others[:of_node]),
        "trainers": ",".join(f"{host}:{number}" for host in hosts for number in others[of_node:]),
        "server_threads": run.servers.threads if run.servers else 0,
    }
    return words, f"{place.head}:{parting}"


def launcher(words: Sequence[str], places: Mapping[str, object]) -> list[str]:
    """What the build's Python is told to start a launcher, or servers, on one node."""
    words = [part.format(**places) for part in words]
    if "-m" not in words:
        return words
    at = words.index("-m")
    return [*words[:at], os.path.relpath(MODULE_STARTER), *words[at + 1 :]]


def _data_outside(run: Run) -> tuple[Path, ...]:
    """The folder that a run reads, where the working folder only links to it or lacks it."""
    if run.data is None:
        return ()
    named, real = Path(run.data).absolute(), Path(run.data).resolve()
    here = Path.cwd()
    return tuple(path for path in dict.fromkeys((named, real)) if not path.is_relative_to(here))
