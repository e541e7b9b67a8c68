# The data sets: images and text, and the record files that systems read.

from reperf.data.kinds import KINDS

# What is written last of each embedded set. The user's own files are nobody's inputs: Snakemake
# would look at every one of them.
EMBEDDED = {
    name: f"data/{name}/{KINDS[data.kind].embedded}"
    for name, data in PLANS.sets.items()
    if data.is_embedded
}


def input_of_set(wildcards):
    return EMBEDDED.get(wildcards.set, [])


@cache
def is_converted_again(manifest):
    """Whether a converted set is there, and is not the one that is asked for."""
    _, name, record_format, _ = Path(manifest).parts
    data = PLANS.sets[name]
    kind = KINDS[data.kind]
    converted = record_format in kind.formats and os.path.exists(manifest)
    return converted and not kind.is_of(data, Path(manifest))


def unless_converted(wildcards):
    """None where a set is whole, and the one that is asked for."""
    manifest = f"data/{wildcards.set}/{wildcards.format}/manifest.json"
    if not is_converted_again(manifest):
        return []
    return [made_again(f"{manifest}: the data set is not the one that is asked for")]


def number_of_workers(wildcards):
    return PLANS.sets[wildcards.set].workers


wildcard_constraints:
    set="|".join(map(re.escape, PLANS.sets)),
    embedded="|".join(re.escape(kind.embedded) for kind in KINDS.values()),
    format="|".join(sorted({name for kind in KINDS.values() for name in kind.formats})),


rule make_set:
    input:
        code=code_files(
            "reperf.data.images.embedded_images", "reperf.data.text.embedded_text"
        ),
    output:
        "data/{set}/{embedded}",
    log:
        "logs/make_set/{set}/{embedded}.log",
    message:
        "make the embedded set {wildcards.set}"
    shell:
        "{PYTHON:q} -m reperf.steps make_set {wildcards.set} --log {log:q}"


rule convert:
    input:
        unless_converted,
        plan=if_written("data/{set}/plan.json"),
        set=input_of_set,
        code=code_files(
            "reperf.data.images.convert_images", "reperf.data.text.convert_text"
        ),
    output:
        "data/{set}/{format}/manifest.json",
    log:
        "logs/convert/{set}/{format}.log",
    threads: number_of_workers
    message:
        "convert {wildcards.set} to {wildcards.format}"
    shell:
        "{PYTHON:q} -m reperf.steps convert {wildcards.set} {wildcards.format} --log {log:q}"
