# reperf: from a folder of images to a report in which every number can be traced.

from snakemake.utils import min_version

min_version("9.13")


report: "workflow/captions/workflow.rst"


# Files behind --configfile replace config.yaml where they say what is measured, else they add to it.
if "suites" not in config:

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
        *RESULTS.values(),


# snakemake runs, tables, figures, reports, archives: a part of it; and what runs train in.
for part, files in {**RESULTS, "environments": PLANS.environments}.items():

    rule:
        name:
            part
        input:
            lambda wildcards, files=files: files,
        localrule: True
