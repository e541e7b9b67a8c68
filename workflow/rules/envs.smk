# The systems' environments: one folder a system, made from its recipe.

import shlex
import subprocess
from functools import cache
from pathlib import Path

from reperf.systems.environments import RECORD, why_build
from reperf.files import whole_file
from reperf.systems import load_systems


# For Snakemake, what was made of a new or a missing file is to be made again, and what depends on
# a file that is to be made has no other reason to be. An environment of the same recipe decides
# the same, and of another one the digest of the trainer says so: so its record is "ancient", is
# there where runs are, and what is out of date is built before the first job.
@cache
def environment_of(system):
    """The record of a system's environment, as an input of its runs."""
    record = load_systems()[system].environment / RECORD
    if Path("results/runs").exists() and not record.exists():
        with one_line_errors(), whole_file(record):
            pass
    return ancient(str(record))


def build_what_is_out_of_date():
    """Build the environments again that are there, and of no use to the runs to come."""
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
    """Have an environment that is itself a target built again if it is out of date."""
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
