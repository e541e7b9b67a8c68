# The data sets: what the user has, or what is embedded, and the record files that systems read.

from reperf.data.kinds import KINDS


def code_of_set(wildcards):
    return code_files(PLANS.sets[wildcards.set].of_kind.converter())


wildcard_constraints:
    set="|".join(map(re.escape, PLANS.sets)),
    embedded="|".join(sorted({re.escape(kind.last) for kind in KINDS.values()})),
    format="|".join(sorted({name for kind in KINDS.values() for name in kind.formats})),


rule make_set:
    input:
        code=code_of_set,
    output:
        "data/{set}/{embedded}",
    log:
        "logs/make_set/{set}/{embedded}.log",
    message:
        "make the embedded set {wildcards.set}"
    script:
        "../scripts/make_set.py"


rule convert:
    input:
        set=lambda wildcards: PLANS.embedded.get(wildcards.set, []),
        code=code_of_set,
    output:
        "data/{set}/{format}/manifest.json",
    log:
        "logs/convert/{set}/{format}.log",
    benchmark:
        "logs/convert/{set}/{format}.benchmark.tsv"
    retries: 0  # another try would find the same
    threads: lambda wildcards: PLANS.sets[wildcards.set].workers
    params:
        plan=lambda wildcards: PLANS.set_digests[wildcards.set],
    message:
        "convert {wildcards.set} to {wildcards.format}"
    script:
        "../scripts/convert.py"
