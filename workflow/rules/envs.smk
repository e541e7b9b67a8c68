# The systems' environments: one folder per system, made from its recipe.

import shlex
import subprocess
from functools import cache
from pathlib import Path

from reperf.errors import one_line_errors
from reperf.files import whole_file
from reperf.systems import load_systems
from reperf.systems.environments import RECORD, why_build


# Snakemake would train runs again because their environment is newer than they are, or missing. But
# an environment of the same recipe gives the same runs, and another recipe changes the trainer's
# digest. So the record is "ancient", it is made to exist where runs do, and environments that are
# out of date are built before the first job.
@cache
def environment_of(system):
    """The record of a system's environment, as an input of its runs."""
    record = load_systems()[system].environment / RECORD
    if Path("results/runs").exists() and not record.exists():
        with one_line_errors(), whole_file(record):
            pass
    return ancient(str(record))


def build_what_is_out_of_date():
    """Build again those environments that exist but no longer suit the runs to come."""
    used = {the_run(job.wildcards).system for job in CALL.jobs_to_run("train")}
    for folder in sorted({load_systems()[system].environment for system in used}):
        system = load_systems()[folder.name]
        if (folder / RECORD).exists() and (why := why_build(system, folder)):
            say(f"{why}; it is built again")
            # A process of its own, which ends with this one.
            log = f"logs/envs/{folder.name}.log"
            command = [
                *shlex.split(PYTHON),
                "-m",
                "reperf.systems.environments",
                folder.name,
            ]
            answer = subprocess.run(
                [*command, "--log", log], check=False, stderr=subprocess.PIPE, text=True
            )
            if answer.returncode:
                sys.exit(answer.stderr.strip())


def built_if_asked_for(wildcards):
    """If an environment is itself a target and out of date, build it again."""
    system = load_systems()[wildcards.system]
    record = str(system.environment / RECORD)
    if CALL.is_target(record) and why_build(system, system.environment):
        CALL.run_again(record)
    return True


rule environment:
    output:
        ".envs/{system}/environment.json",
    log:
        "logs/envs/{system}.log",
    wildcard_constraints:
        system="|".join(load_systems()),
    params:
        current=built_if_asked_for,
    message:
        "build the environment of {wildcards.system}"
    shell:
        "{PYTHON} -m reperf.systems.environments {wildcards.system} --log {log:q}"
