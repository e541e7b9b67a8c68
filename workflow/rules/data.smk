# The data sets: what the user has, or what is embedded, and the record files that systems read.

from reperf.data.kinds import KINDS

# What is written last of each embedded set. The user's own files are nobody's inputs: Snakemake
# would look at every one of them.
EMBEDDED = {
    name: f"data/{name}/{KINDS[data.kind].last}"
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


@or_end
def unless_converted(wildcards):
    """None where a set is whole, and the one that is asked for."""
    manifest = f"data/{wildcards.set}/{wildcards.format}/manifest.json"
    if not is_converted_again(manifest):
        return []
    return [made_again(f"{manifest}: the data set is not the one that is asked for")]


def code_that_makes(wildcards):
    return code_files(KINDS[PLANS.sets[wildcards.set].kind].modules[0])


def code_that_converts(wildcards):
    return code_files(KINDS[PLANS.sets[wildcards.set].kind].modules[1])


def number_of_workers(wildcards):
    return PLANS.sets[wildcards.set].workers


wildcard_constraints:
    set="|".join(map(re.escape, PLANS.sets)),
    embedded="|".join(sorted({re.escape(kind.last) for kind in KINDS.values()})),
    format="|".join(sorted({name for kind in KINDS.values() for name in kind.formats})),


rule make_set:
    input:
        plan=if_written("data/{set}/plan.json"),
        code=code_that_makes,
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
        code=code_that_converts,
    output:
        "data/{set}/{format}/manifest.json",
    log:
        "logs/convert/{set}/{format}.log",
    benchmark:
        "logs/convert/{set}/{format}.benchmark.tsv"
    retries: 0  # another try would find the same
    threads: number_of_workers
    message:
        "convert {wildcards.set} to {wildcards.format}"
    shell:
        "{PYTHON:q} -m reperf.steps convert {wildcards.set} {wildcards.format} --log {log:q}"
