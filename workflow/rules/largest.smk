# The largest batches that train: one search for all runs that it decides, before any of them.

import json
from functools import cache

from reperf.builds import build_of
from reperf.config.words import LARGEST
from reperf.layout import BATCH_FOLDER, BATCH_RECORD
from reperf.training.largest import TIME_LIMITS, found_by, search_for
from reperf.training.slurm import resources_of_job

# As read back from JSON: that is how runs get it, and how their records hold it.
CLUSTER = json.loads(json.dumps(REPORT.cluster and REPORT.cluster.of_launch()))


@cache
def search_of(suite, entry):
    """The search for the largest batch of an entry; None if the configuration names its batch."""
    run = next(run for run in RUNS[suite] if run.entry == entry)
    if run.batch_size != LARGEST:
        return None
    return search_for(run, REPORT.suite(suite).widest_topology, CLUSTER)


@cache
def found_so_far(search):
    """What a search has found, if it need not be made again; and why it must be."""
    return found_by(search)


def as_found(run):
    """A planned run with its batch size, if that is known; and the file that says it."""
    search = search_of(run.suite, run.entry)
    if search is None:
        return run, []
    found, _ = found_so_far(search)
    return run.with_batch(found.batch_size) if found else run, str(search.path)


# Path -> the search, and the suites that it is for.
SEARCHES = {}
for suite, runs in RUNS.items():
    for entry in {run.entry: None for run in runs}:
        if search := search_of(suite, entry):
            SEARCHES.setdefault(str(search.path), (search, []))[1].append(suite)


def path_of_search(wildcards):
    return f"{BATCH_FOLDER}/{BATCH_RECORD}".format_map(dict(wildcards.items()))


def inputs_of_search(wildcards):
    path = path_of_search(wildcards)
    search, suites = SEARCHES[path]
    _, why = found_so_far(search)
    if why:
        again(path, why)
    return {
        "data": what_is_read(search.run.model_copy(update={"suite": suites[0]})),
        "environment": record_of(build_of(search.run)),
    }


def run_of_search(wildcards):
    return SEARCHES[path_of_search(wildcards)][0].run


def topology_of_search(wildcards):
    return run_of_search(wildcards).topology


def time_limit_of_trial(wildcards):
    _, suites = SEARCHES[path_of_search(wildcards)]
    return max(REPORT.suite(suite).time_limit for suite in suites)


def time_limit_of_search(wildcards):
    return TIME_LIMITS * time_limit_of_trial(wildcards)


rule largest:
    input:
        unpack(inputs_of_search),
    output:
        f"{BATCH_FOLDER}/{BATCH_RECORD}",
    log:
        "logs/largest/{entry}/{digest}.log",
    wildcard_constraints:
        digest="[0-9a-f]{16}",
    # A trial must not be short of memory because of others, nor disturb what is measured.
    threads: ALL_CORES
    resources:
        **resources_of_job(REPORT, topology_of_search, time_limit_of_search),
        attempt=lambda wildcards, attempt: attempt,
        time_limit=time_limit_of_trial,
    # All that decides what is found is in the path.
    params:
        run=lambda wildcards: run_of_search(wildcards).model_dump_json(),
        trainer=lambda wildcards: SEARCHES[path_of_search(wildcards)][0].trainer,
        cluster=json.dumps(CLUSTER),
    message:
        "find the largest batch of {wildcards.entry}"
    shell:
        "{PYTHON} -m reperf.training.largest"
        " --run {params.run:q} --trainer {params.trainer} --cluster {params.cluster:q}"
        " --log {log:q} --time-limit {resources.time_limit}"
        " --attempt {resources.attempt} --retries {CALL.retries}"
