# How the systems get their frameworks: an environment for each lock, a folder for each image.

import shlex
import subprocess
from contextlib import contextmanager
from functools import cache

from reperf.builds import RECORD, ImageBuild, build_of, every_lock, why_build
from reperf.builds.image_build import check_starts
from reperf.errors import one_line_errors
from reperf.files import whole_file


# Snakemake would train runs again because their build is newer than they are, or missing. But a
# build of the same recipe gives the same runs, and another recipe changes the trainer's digest. So
# the record is "ancient", it is made to exist where runs do, and builds that are out of date are
# made again before the first job.
#
# An image may turn out to be none, and nobody should learn that after the runs of other systems. So
# images are made before the first job, too, even for the first time.
@cache
def record_of(build):
    """The record of a build, as an input of its runs."""
    record = build.folder / RECORD
    made_first = Path("results/runs").exists() or (
        isinstance(build, ImageBuild) and not CALL.is_dry
    )
    if made_first and not record.exists():
        with one_line_errors(), whole_file(record):
            pass
    return ancient(str(record))


@contextmanager
def no_empty_records():
    """Leave no record behind that says nothing of its image."""
    try:
        yield
    finally:
        for build in IMAGES.values():
            record = build.folder / RECORD
            if record.exists() and record.stat().st_size == 0:
                record.unlink()


def build_what_is_out_of_date():
    """Make the images of the runs to come, and again those builds that no longer suit them."""
    used = {build_of(the_run(job.wildcards)) for job in CALL.jobs_to_run("train")}
    used |= {
        build_of(run_of_search(job.wildcards)) for job in CALL.jobs_to_run("largest")
    }
    for build in sorted(used, key=lambda build: build.folder):
        record = build.folder / RECORD
        if record.exists() and (why := why_build(build)):
            is_new = isinstance(build, ImageBuild) and record.stat().st_size == 0
            say(
                f"get the image of {build.system.id}, and what it lacks"
                if is_new
                else f"{why}; it is built again"
            )
            # A process of its own, which ends with this one.
            answer = subprocess.run(
                [*shlex.split(PYTHON), "-m", "reperf.builds", *arguments_of(build)],
                check=False,
                stderr=subprocess.PIPE,
                text=True,
            )
            if answer.returncode:
                sys.exit(answer.stderr.strip())
        elif record.exists() and isinstance(build, ImageBuild):
            check_starts(build)


def arguments_of(build):
    """What `python -m reperf.builds` is told."""
    name = build.folder.name
    if build.folder.parent.name == ".envs":
        return ["lock", name, "--log", f"logs/envs/{name}.log"]
    where = ["--container", build.container.model_dump_json(), "--cluster", PULL_ON]
    return ["image", name, *where, "--log", f"logs/images/{name}.log"]


# On which cluster images are pulled, if the engine is on its nodes alone.
PULL_ON = REPORT.cluster.model_dump_json() if REPORT.cluster else "null"
IMAGES = {
    build.folder.name: build
    for suite in REPORT.suites
    for build in {build_of(run) for run in RUNS[suite.name] if run.container}
}


def built_if_asked_for(build):
    """If a build is itself a target and out of date, make it again."""
    record = str(build.folder / RECORD)
    if CALL.is_target(record) and why_build(build):
        CALL.run_again(record)
    return True


rule environment:
    output:
        ".envs/{name}/environment.json",
    log:
        "logs/envs/{name}.log",
    wildcard_constraints:
        name="|".join(map(re.escape, every_lock())),
    params:
        current=lambda wildcards: built_if_asked_for(every_lock()[wildcards.name]),
    message:
        "build the environment of {wildcards.name}"
    shell:
        "{PYTHON} -m reperf.builds lock {wildcards.name} --log {log:q}"


rule image:
    output:
        ".images/{name}/environment.json",
    log:
        "logs/images/{name}.log",
    wildcard_constraints:
        name="|".join(map(re.escape, IMAGES)) or "none",
    # Not parameters: what is out of date is found by what it was made from, as above.
    resources:
        container=lambda wildcards: IMAGES[wildcards.name].container.model_dump_json(),
        cluster=PULL_ON,
    params:
        current=lambda wildcards: built_if_asked_for(IMAGES[wildcards.name]),
    message:
        "get the image of {wildcards.name}, and what it lacks"
    shell:
        "{PYTHON} -m reperf.builds image {wildcards.name}"
        " --container {resources.container:q} --cluster {resources.cluster:q} --log {log:q}"
