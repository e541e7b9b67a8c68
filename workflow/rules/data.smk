# The data sets: images, and the record files that systems read.

from pathlib import Path

from reperf.data import RECORD_FORMATS
from reperf.data.listing import check_layout
from reperf.data.manifest import Manifest
from reperf.errors import one_line_errors

SETS = {data.name: data for data in REPORT.data}
SET_OF = {suite.name: REPORT.data_of(suite) for suite in REPORT.suites}

for data in SETS.values():
    # Once they are converted, the images are no longer needed.
    if data.images and not any(Path("data", data.name).glob("*/manifest.json")):
        with one_line_errors():
            check_layout(data.images)


def images_of(data):
    """The images; the user's own folder is no input, or Snakemake would look at every file."""
    return [] if data.images else f"data/{data.name}/images/manifest.json"


def what_is_read(run):
    """What must exist before a run reads its input: record parts, images, or nothing."""
    if run.data is None:
        return []
    if run.input == "folder":
        return images_of(SET_OF[run.suite])
    return f"{run.data}/manifest.json"


def images_of_set(wildcards):
    """The images; a set made from other images, or with other settings, is made again."""
    data = SETS[wildcards.set]
    manifest = Path(data.folder(wildcards.format), "manifest.json")
    if manifest.exists() and not Manifest.read(manifest).is_of(
        data.image_folder, data.parts, data.seed
    ):
        again(manifest, f"{manifest}: the data set is not the one that is asked for")
    return images_of(data)


def folder_of_images(wildcards):
    return str(SETS[wildcards.set].image_folder)


def number_of_parts(wildcards):
    return SETS[wildcards.set].parts


def seed_of_shuffle(wildcards):
    return SETS[wildcards.set].seed


def number_of_workers(wildcards):
    return SETS[wildcards.set].workers


wildcard_constraints:
    set="|".join(map(re.escape, SETS)),


rule make_images:
    input:
        code=code_of("make_images"),
    output:
        "data/{set}/images/manifest.json",
    log:
        "logs/make_images/{set}.log",
    message:
        "make the embedded images"
    script:
        "../scripts/make_images.py"


rule convert:
    input:
        images=images_of_set,
        code=code_of("convert"),
    output:
        "data/{set}/{format}/manifest.json",
    log:
        "logs/convert/{set}/{format}.log",
    wildcard_constraints:
        format="|".join(RECORD_FORMATS),
    threads: number_of_workers
    params:
        images=folder_of_images,
        parts=number_of_parts,
        seed=seed_of_shuffle,
    message:
        "convert the images of {wildcards.set} to {wildcards.format}"
    script:
        "../scripts/convert.py"
