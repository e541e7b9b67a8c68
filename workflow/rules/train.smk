# One training run per repeat of every cell.

import json
from functools import cache

from reperf.layout import RUN_FOLDER, RUN_LOG, RUN_RECORD
from reperf.systems import load_systems
from reperf.training.slurm import resources_of_run
from reperf.training.tries import not_as_planned, take_up

# As read back from JSON: that is how runs get it, and how their records hold it.
CLUSTER = json.loads(json.dumps(REPORT.cluster and REPORT.cluster.of_launch()))


@cache
def run_of_path(suite, entry, topology, repeat):
    return REPORT.run(suite, entry, topology, repeat)


def the_run(wildcards):
    return run_of_path(*wildcards)


# One function for both: one more adds half a second to planning ten thousand runs.
def inputs_of_run(wildcards):
    run = the_run(wildcards)
    trainer = load_systems()[run.system].digest(run.workload)
    if not CALL.is_dry:
        take_up(run, trainer, CLUSTER)
    if why := not_as_planned(run, trainer, CLUSTER):
        again(run.record, why)
    return {
        "data": what_is_read(run),
        "environment": environment_of(run.system),
    }


def settings_of_run(wildcards):
    return the_run(wildcards).model_dump_json()


def trainer_of_run(wildcards):
    run = the_run(wildcards)
    return load_systems()[run.system].digest(run.workload)


def time_limit_of_run(wildcards):
    return REPORT.suite(wildcards.suite).time_limit


def window_of_run(wildcards):
    window = REPORT.suite(wildcards.suite).window
    return f"{window.first} {window.last}"


def number_of_attempt(wildcards, attempt):
    return attempt


rule train:
    input:
        unpack(inputs_of_run),
    output:
        log=f"{RUN_FOLDER}/{RUN_LOG}",
        record=f"{RUN_FOLDER}/{RUN_RECORD}",
    log:
        "logs/train/{suite}/{entry}/{topology}/{repeat}.log",
    # Runs must not share the machine with anything while they are measured.
    threads: ALL_CORES
    resources:
        **resources_of_run(REPORT),
        attempt=number_of_attempt,
        time_limit=time_limit_of_run,
        # Not a parameter: another window measures the same runs, without training them again.
        window=window_of_run,
    params:
        run=settings_of_run,
        trainer=trainer_of_run,  # if it changes, all of its runs are trained again
        cluster=json.dumps(CLUSTER),
    message:
        "train {wildcards.suite}: {wildcards.entry} on {wildcards.topology}, repeat {wildcards.repeat}"
    # A shell command: a Slurm job can run one without starting Snakemake.
    shell:
        "{PYTHON} -m reperf.training"
        " --run {params.run:q} --cluster {params.cluster:q} --log {log:q}"
        " --window {resources.window}"
        " --time-limit {resources.time_limit} --attempt {resources.attempt}"
        " --retries {CALL.retries}"
