# How the systems get their frameworks: an environment for each lock, a folder for each image.

from reperf.builds import RECORD, every_lock, why_build
from reperf.builds.image_build import check_starts

LOCKS = every_lock()
IMAGES = {plan.build.folder.name: plan.build for plan in PLANS.images.values()}


def recipe_of_lock(wildcards):
    """What an environment is made from; "ancient", because its folder's name holds the digest."""
    return [ancient(file) for file in seen_from_here(LOCKS[wildcards.name].recipe)]


def unless_built(builds):
    """An input function: none where a build is not there yet, or can be used as it is."""

    @or_end
    def look(wildcards):
        build = builds[wildcards.name]
        if not (build.folder / RECORD).exists() or not (why := why_build(build)):
            return []
        return [made_again(why)]

    return look


def check_images_start():
    """Start the images of the runs to come: one that cannot be started is told before any run."""
    to_come = {
        plan.build.folder
        for folder, plan in PLANS.runs.items()
        if plan.run.container and why_train(folder) != ""
    }
    for build in IMAGES.values():
        if str(build.folder) in to_come and (build.folder / RECORD).exists():
            check_starts(build)


rule environment:
    input:
        unless_built(LOCKS),
        recipe=recipe_of_lock,
    output:
        ".envs/{name}/environment.json",
    log:
        "logs/envs/{name}.log",
    wildcard_constraints:
        name="|".join(map(re.escape, LOCKS)),
    message:
        "build the environment of {wildcards.name}"
    shell:
        "{PYTHON:q} -m reperf.steps environment {wildcards.name} --log {log:q}"


rule image:
    input:
        unless_built(IMAGES),
        plan=if_written(".images/{name}/plan.json"),
    output:
        ".images/{name}/environment.json",
    log:
        "logs/images/{name}.log",
    wildcard_constraints:
        name="|".join(map(re.escape, IMAGES)) or "none",
    message:
        "get the image of {wildcards.name}, and what it lacks"
    shell:
        "{PYTHON:q} -m reperf.steps image {wildcards.name} --log {log:q}"
