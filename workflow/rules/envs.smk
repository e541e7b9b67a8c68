# The systems' environments: one folder a system, made from its lock.

from functools import cache
from pathlib import Path

from reperf.environments import RECORD, why_unusable
from reperf.files import whole_file
from reperf.systems import load_systems


@cache
def have_built_again(system):
    """Have an environment built again that was moved, or whose Python or folder is gone."""
    record = Path(".envs", system, RECORD)
    runs_decided = Path("results/runs").exists()
    if (record.exists() or runs_decided) and (why := why_unusable(record.parent)):
        print(f"reperf: {why}; it is built again", file=sys.stderr)
        workflow.dag.forcefiles.add(str(record))
        if not record.exists():
            # Where an input is missing, Snakemake redoes all that was made from it.
            with one_line_errors(), whole_file(record):
                pass


def recipe_of_system(wildcards):
    have_built_again(wildcards.system)
    return seen_from_here(load_systems()[wildcards.system].recipe)


def packages_of_system(wildcards):
    return load_systems()[wildcards.system].packages


def python_of_system(wildcards):
    return load_systems()[wildcards.system].python


# The library's code is no input here: it decides no result.
rule environment:
    input:
        recipe=recipe_of_system,
    output:
        ".envs/{system}/environment.json",
    log:
        "logs/envs/{system}.log",
    wildcard_constraints:
        system="|".join(load_systems()),
    params:
        packages=packages_of_system,
        python=python_of_system,
    message:
        "build the environment of {wildcards.system}"
    script:
        "../scripts/build_environment.py"
