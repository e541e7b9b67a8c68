# reperf: from a folder of images to a report in which every number can be traced.

from reperf.building.snakemake_state import SnakemakeState
from snakemake.utils import min_version

min_version("9.13")

CALL = SnakemakeState(workflow)

# One file is the whole report: --configfile replaces config.yaml, it does not add to it.
if not CALL.names_configfile:

    configfile: "config.yaml"


include: "workflow/rules/common.smk"
include: "workflow/rules/data.smk"
include: "workflow/rules/envs.smk"
include: "workflow/rules/largest.smk"
include: "workflow/rules/train.smk"
include: "workflow/rules/measure.smk"
include: "workflow/rules/figures.smk"
include: "workflow/rules/report.smk"
include: "workflow/rules/archive.smk"
include: "workflow/rules/complete.smk"


rule all:
    default_target: True
    input:
        "results/complete.txt",
