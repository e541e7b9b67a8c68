# The images, and the record files that systems read.

from pathlib import Path

from reperf.data import RECORD_FORMATS
from reperf.data.listing import check_layout
from reperf.data.manifest import Manifest
from reperf.errors import one_line_errors

# A folder that the user names is never an input: Snakemake would look at each of its files.
if REPORT.data.images is None:
    IMAGES = f"data/{REPORT.data.name}/images/manifest.json"

    rule make_images:
        input:
            code=code_of("make_images"),
        output:
            IMAGES,
        log:
            "logs/make_images.log",
        message:
            "make the embedded images"
        script:
            "../scripts/make_images.py"

else:
    IMAGES = []
    # Once they are converted, the images may be away.
    if not any(Path("data", REPORT.data.name).glob("*/manifest.json")):
        with one_line_errors():
            check_layout(REPORT.data.images)


def data_manifest(reads):
    """What must exist before a run reads its input: a record format, folder or synthetic."""
    if reads == "synthetic":
        return []
    if reads == "folder":
        return IMAGES
    return f"{REPORT.data_folder(reads)}/manifest.json"


def images_of_set(wildcards):
    """The images; and where a set was made from others, or otherwise, it is made again."""
    manifest = Path(f"{REPORT.data_folder(wildcards.format)}/manifest.json")
    data = REPORT.data
    if manifest.exists() and not Manifest.read(manifest).is_of(
        REPORT.image_folder, data.parts, data.seed
    ):
        again(manifest, f"{manifest}: the data set is not the one that is asked for")
    return IMAGES


rule convert:
    input:
        images=images_of_set,
        code=code_of("convert"),
    output:
        f"data/{REPORT.data.name}/{{format}}/manifest.json",
    log:
        "logs/convert/{format}.log",
    wildcard_constraints:
        format="|".join(RECORD_FORMATS),
    threads: REPORT.data.workers
    params:
        images=str(REPORT.image_folder),
        parts=REPORT.data.parts,
        seed=REPORT.data.seed,
    message:
        "convert the images to {wildcards.format}"
    script:
        "../scripts/convert.py"
