# reperf: from a folder of images to a report in which every number can be traced.

from snakemake.utils import min_version

min_version("9.13")

# One file is the whole report: --configfile replaces config.yaml, it does not add to it.
if not workflow.configfiles:

    configfile: "config.yaml"


include: "workflow/rules/common.smk"
include: "workflow/rules/data.smk"
include: "workflow/rules/builds.smk"
include: "workflow/rules/train.smk"
include: "workflow/rules/measure.smk"
include: "workflow/rules/figures.smk"
include: "workflow/rules/report.smk"
include: "workflow/rules/archive.smk"


# All that people keep: of files that nobody asks for, Snakemake makes none again that is lost.
rule all:
    default_target: True
    input:
        rules.complete.output,
        *RESULTS,
        MEMORY,


# snakemake runs, tables, figures, reports, archives: a part of it.
for part in RESULTS._fields:

    rule:
        name:
            part
        input:
            getattr(RESULTS, part),
        localrule: True
