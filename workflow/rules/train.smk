# One training run per repeat of every cell, and the searches for the largest batches before them.

from reperf.data.manifest import digest_of_set
from reperf.plans.current import why_not_current
from reperf.targets import not_a_target
from reperf.training.batch_search import TIME_LIMITS, found_by
from reperf.training.slurm import resources_of_job

RUN = "results/runs/{suite}/{entry}/{topology}/{repeat}"
SEARCH = "results/largest/{entry}/{digest}"
# Runs must not share the machine with anything while they are measured; on a cluster Slurm sees to
# that, and Snakemake has no cores to give.
ALL_CORES = 1 if REPORT.cluster else workflow.cores


@cache
def found(search):
    """What a search has found, if it need not be made again; and why it must be."""
    return found_by(Path(search), PLANS.searches[search])


@cache
def why_train(folder):
    """Why a run must be trained: "" if it need not, None if there is no record of it."""
    plan = PLANS.runs[folder]
    largest, _ = found(plan.batch) if plan.batch else (None, "")
    data = set_now(plan.run.input, plan.run.data)
    return why_not_current(plan, largest and largest.batch_size, data, folder)


def is_wanted_anew(folder):
    """Whether somebody asks for another try of a run that has ended well."""
    return CALL.asks_for("train", f"{folder}/run.json") and why_train(folder) == ""


def check_is_planned(path, plans):
    if path not in plans:
        why = f"not in the report of {CALL.configfile}"
        sys.exit(not_a_target(path, why, LogHandler.suites, LogHandler.place))


@cache
def set_read(read, data):
    """The manifest of the data set that a run reads, if there is one."""
    manifest = f"{data}/manifest.json"
    own = read == "folder" and manifest not in EMBEDDED.values()
    return [] if data is None or own else [manifest]


@cache
def set_now(read, data):
    """The digest of the set that a run reads; None if it is not there, or converted again."""
    again = any(map(is_converted_again, set_read(read, data)))
    return None if again else digest_of_set(data)


@cache
def build_in(folder):
    """The record of a build, and those of all images.

    An image may turn out to be none: nobody should learn that after hours of other runs.
    """
    folders = {folder, *(str(build.folder) for build in IMAGES.values())}
    return [f"{one}/environment.json" for one in sorted(folders)]


# Only a job that must run asks for this: a record names the plan that it is of, and what was found.
# It is not "ancient": where a build is made again, Snakemake would then forget why the job must run.
def needs_of(plan):
    """What must exist before a run starts: what it reads, its framework, its batch size."""
    return {
        "data": set_read(plan.run.input, plan.run.data),
        "build": build_in(plan.build.folder),
        "batch": plan.batch or [],
    }


# One function for all inputs: each costs half a second when ten thousand runs are planned.
@or_end
def inputs_of_run(wildcards):
    folder = "results/runs/{}/{}/{}/{}".format(*wildcards)
    check_is_planned(folder, PLANS.runs)
    why, record = why_train(folder), f"{folder}/run.json"
    if why == "" and CALL.is_target(record):
        why = fault_of_runs([folder])
    asked = {"plan": written(f"{folder}/plan.json")}
    if why or why is None or CALL.asks_for("train", record):
        asked |= needs_of(PLANS.runs[folder])
    else:  # its bytes decide whether the run is made again, and not its time
        asked["data"] = sets_converted_again(PLANS.runs[folder].run)
    return asked | ({"newer": made_again(why)} if why else {})


def sets_converted_again(run):
    manifests = set_read(run.input, run.data)
    return [ancient(path) for path in manifests if is_converted_again(path)]


@or_end
def inputs_of_search(wildcards):
    folder = "results/largest/{}/{}".format(*wildcards)
    path = f"{folder}/batch.json"
    check_is_planned(path, PLANS.searches)
    largest, why = found(path)
    asked = {"plan": written(f"{folder}/plan.json")}
    if largest is None or CALL.asks_for("largest", path):
        asked |= needs_of(PLANS.searches[path]) | (
            {"newer": made_again(why)} if why else {}
        )
    return asked


def plan_of_search(wildcards):
    return PLANS.searches["results/largest/{}/{}/batch.json".format(*wildcards)]


def plan_of_run(wildcards):
    return PLANS.runs[RUN.format(**wildcards)]


rule largest:
    input:
        unpack(inputs_of_search),
    output:
        f"{SEARCH}/batch.json",
    log:
        "logs/largest/{entry}/{digest}.log",
    wildcard_constraints:
        digest="[0-9a-f]{16}",
    threads: ALL_CORES
    resources:
        **resources_of_job(REPORT, plan_of_search, TIME_LIMITS),
    message:
        "find the largest batch of {wildcards.entry}"
    shell:
        "{PYTHON:q} -m reperf.training"
        " results/largest/{wildcards.entry}/{wildcards.digest}/plan.json"
        " --retries {CALL.retries} --log {log:q}"


rule train:
    input:
        unpack(inputs_of_run),
    output:
        log=f"{RUN}/train.log",
        record=f"{RUN}/run.json",
    log:
        "logs/train/{suite}/{entry}/{topology}/{repeat}.log",
    threads: ALL_CORES
    resources:
        **resources_of_job(REPORT, plan_of_run),
    message:
        "train {wildcards.suite}: {wildcards.entry} on {wildcards.topology}, repeat {wildcards.repeat}"
    # A shell command: a Slurm job can run one without starting Snakemake.
    shell:
        "{PYTHON:q} -m reperf.training"
        " results/runs/{wildcards.suite}/{wildcards.entry}/{wildcards.topology}/{wildcards.repeat}/plan.json"
        " --retries {CALL.retries} --log {log:q}"
