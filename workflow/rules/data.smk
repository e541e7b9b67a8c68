# The data sets: images and text, and the record files that systems read.

from pathlib import Path

from reperf.data import RECORD_FORMATS, TEXT_FORMATS
from reperf.data.images.listing import check_layout
from reperf.data.images.image_manifest import Manifest
from reperf.data.text.corpus import check_text
from reperf.data.text.text_manifest import TextManifest
from reperf.data.text.vocab_file import read_vocabulary
from reperf.errors import one_line_errors

SETS = {data.name: data for data in REPORT.data}
SET_OF = {suite.name: REPORT.data_of(suite) for suite in REPORT.suites}

for data in SETS.values():
    # Once they are converted, the images or the text are no longer needed.
    if not any(Path("data", data.name).glob("*/manifest.json")):
        with one_line_errors():
            if data.images:
                check_layout(data.images)
            if data.text:
                check_text(data.text)
            if data.vocabulary:
                read_vocabulary(data.vocabulary, data.vocabulary_size)


def sets_of(kind):
    """A pattern of the names of a kind's sets; Snakemake takes an empty one for any name."""
    return (
        "|".join(re.escape(data.name) for data in SETS.values() if data.kind == kind)
        or "(?!)"
    )


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


def made_again(manifest):
    """Convert a set again that was made from other images or text, or with other settings."""
    again(manifest, f"{manifest}: the data set is not the one that is asked for")


def images_of_set(wildcards):
    """The images that are converted."""
    data = SETS[wildcards.set]
    manifest = Path(data.folder(wildcards.format), "manifest.json")
    if manifest.exists() and not Manifest.read(manifest).is_of(
        data.image_folder, data.parts, data.seed
    ):
        made_again(manifest)
    return images_of(data)


def text_of_set(wildcards):
    """The text that is converted; the user's own is no input, as their images are none."""
    data = SETS[wildcards.set]
    manifest = Path(data.folder(wildcards.format), "manifest.json")
    if manifest.exists() and not TextManifest.read(manifest).is_of(data.text_settings):
        made_again(manifest)
    return [] if data.text else data.text_settings.text


def folder_of_images(wildcards):
    return str(SETS[wildcards.set].image_folder)


def number_of_parts(wildcards):
    return SETS[wildcards.set].parts


def seed_of_shuffle(wildcards):
    return SETS[wildcards.set].seed


def settings_of_text(wildcards):
    return SETS[wildcards.set].text_settings.model_dump()


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
        set=sets_of("images"),
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


rule make_text:
    input:
        code=code_of("make_text"),
    output:
        "data/{set}/text.txt",
    log:
        "logs/make_text/{set}.log",
    message:
        "make the embedded text"
    script:
        "../scripts/make_text.py"


rule convert_text:
    input:
        text=text_of_set,
        code=code_of("convert_text"),
    output:
        "data/{set}/{format}/manifest.json",
    log:
        "logs/convert_text/{set}/{format}.log",
    wildcard_constraints:
        set=sets_of("text"),
        format="|".join(TEXT_FORMATS),
    threads: number_of_workers
    params:
        settings=settings_of_text,
    message:
        "convert the text of {wildcards.set} to {wildcards.format}"
    script:
        "../scripts/convert_text.py"
