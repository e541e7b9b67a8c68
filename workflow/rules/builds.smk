# How the systems get their frameworks: from locks, existing environments, or images.

from reperf.builds import every_lock
from reperf.builds.image_build import image_file

BUILDS = every_lock() | PLANS.named_builds


def recipe_of_lock(wildcards):
    """What an environment is made from; "ancient", because its folder's name holds the digest."""
    return [ancient(file) for file in seen_from_here(BUILDS[wildcards.name].recipe)]


# An environment's programs name the folder that it was built in.
rule environment:
    input:
        recipe=recipe_of_lock,
    output:
        ".envs/{name}/environment.json",
    log:
        "logs/envs/{name}.log",
    wildcard_constraints:
        name="|".join(map(re.escape, BUILDS)),
    params:
        folder=lambda wildcards: str(Path(".envs").resolve()),
    message:
        "build the environment of {wildcards.name}"
    script:
        "../scripts/environment.py"


rule image:
    input:
        image=lambda wildcards: image_file(BUILDS[wildcards.name].container),
    output:
        ".images/{name}/environment.json",
    log:
        "logs/images/{name}.log",
    wildcard_constraints:
        name="|".join(map(re.escape, BUILDS)),
    params:
        plan=lambda wildcards: PLANS.builds[Path(".images", wildcards.name)].digest,
        folder=lambda wildcards: str(Path(".images").resolve()),
    message:
        "get the image of {wildcards.name}, and what it lacks"
    script:
        "../scripts/image.py"
