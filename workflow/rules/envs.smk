# The systems' environments: one folder a system, made from its lock.

from reperf.systems import load_systems


def recipe_of_system(wildcards):
    return seen_from_here(load_systems()[wildcards.system].recipe)


def packages_of_system(wildcards):
    return load_systems()[wildcards.system].packages


def python_of_system(wildcards):
    return load_systems()[wildcards.system].python


# The library's code is no input here: it decides no result, and a new environment reruns every run.
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
