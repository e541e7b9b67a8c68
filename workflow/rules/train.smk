# One training run per repeat of every cell.

from functools import cache

from reperf.builds import build_of, trainer_digest
from reperf.builds.built import digest_now
from reperf.layout import RUN_FOLDER, RUN_LOG, RUN_RECORD
from reperf.training.slurm import resources_of_run
from reperf.training.tries import not_as_planned, take_up


@cache
def run_of_path(suite, entry, topology, repeat):
    return REPORT.run(suite, entry, topology, repeat)


def the_run(wildcards):
    return run_of_path(*wildcards)


# One function for both: one more adds half a second to planning ten thousand runs.
def inputs_of_run(wildcards):
    run, batch = as_found(the_run(wildcards))
    trainer = trainer_digest(run)
    if not CALL.is_dry:
        take_up(run, trainer, CLUSTER)
    if why := not_as_planned(run, trainer, CLUSTER, digest_now(build_of(run))):
        again(run.record, why)
    return {
        "data": what_is_read(run),
        "environment": record_of(build_of(run)),
        "batch": batch,
    }


def settings_of_run(wildcards):
    return the_run(wildcards).model_dump_json()


def trainer_of_run(wildcards):
    return trainer_digest(the_run(wildcards))


def time_limit_of_run(wildcards):
    return REPORT.suite(wildcards.suite).time_limit


def window_of_run(wildcards):
    window = REPORT.suite(wildcards.suite).window
    return f"{window.first} {window.last}"


def batch_of_run(wildcards):
    return as_found(the_run(wildcards))[1] or "none"


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
        # Nor is this: the path of an input.
        batch=batch_of_run,
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
        " --window {resources.window} --largest {resources.batch:q}"
        " --time-limit {resources.time_limit} --attempt {resources.attempt}"
        " --retries {CALL.retries}"
