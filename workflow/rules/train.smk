# One training run per repeat of every cell, and the searches for the largest batches before them.

from reperf.machine import gpus
from reperf.plans.run_plan import TIME_LIMITS, models_of
from reperf.survey.cell_choice import choose
from reperf.training.slurm import resources_of_job

RUN = "results/runs/{suite}/{entry}/{topology}/{repeat}"
SEARCH = "results/largest/{entry}/{digest}"
# Runs must not share the machine while they are measured; on a cluster Slurm sees to that.
ALL_CORES = 1 if workflow.nodes else workflow.cores


def plan_of_run(wildcards):
    return PLANS.runs[RUN.format(**wildcards)]


def plan_of_search(wildcards):
    return PLANS.searches[f"{SEARCH}/batch.json".format(**wildcards)]


@or_end
def needs_of_run(wildcards):
    return PLANS.needs_of(PLANS.run(RUN.format(**wildcards)))


rule largest:
    input:
        unpack(lambda wildcards: PLANS.needs_of(plan_of_search(wildcards))),
    output:
        f"{SEARCH}/batch.json",
    log:
        "logs/largest/{entry}/{digest}.log",
    wildcard_constraints:
        digest="[0-9a-f]{16}",
    threads: ALL_CORES
    resources:
        **resources_of_job(REPORT, PLANS.searches.values(), plan_of_search, TIME_LIMITS),
        attempt=lambda wildcards, attempt: attempt,
    params:
        plan=lambda wildcards: plan_of_search(wildcards).digest,
        gpus=[] if REPORT.cluster else models_of(gpus()),
    message:
        "find the largest batch of {wildcards.entry}"
    shell:
        "{PYTHON:q} -m reperf.training"
        " results/largest/{wildcards.entry}/{wildcards.digest}/plan.json"
        " --attempt {resources.attempt} --retries {workflow.execution_settings.retries} --log {log:q}"


# It submits its own jobs: each is bound to a node, and is not a run of the report.
rule survey:
    input:
        unpack(or_end(lambda wildcards: PLANS.needs_of(choose(REPORT)))),
    log:
        "logs/survey.log",
    retries: 0  # another try would name other nodes
    message:
        "survey the nodes of the cluster"
    script:
        "../scripts/survey.py"


# A job takes up the last try of its plan, if that has come to its end, and trains nothing.
rule train:
    input:
        unpack(needs_of_run),
    output:
        log=f"{RUN}/train.log",
        record=f"{RUN}/run.json",
    log:
        "logs/train/{suite}/{entry}/{topology}/{repeat}.log",
    threads: ALL_CORES
    resources:
        **resources_of_job(REPORT, PLANS.runs.values(), plan_of_run),
        turn=lambda wildcards: PLANS.turns[RUN.format(**wildcards)],
        attempt=lambda wildcards, attempt: attempt,
    params:
        plan=lambda wildcards: plan_of_run(wildcards).digest,
    message:
        "train {wildcards.suite}: {wildcards.entry} on {wildcards.topology}, repeat {wildcards.repeat}"
    # A shell command: a Slurm job can run one without starting Snakemake.
    shell:
        "{PYTHON:q} -m reperf.training"
        " results/runs/{wildcards.suite}/{wildcards.entry}/{wildcards.topology}/{wildcards.repeat}/plan.json"
        " --attempt {resources.attempt} --retries {workflow.execution_settings.retries} --log {log:q}"
