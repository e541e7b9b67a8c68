"""Make the embedded images or the embedded text of a data set."""

from reperf.building.script import script
from reperf.layout import SET_PLAN
from reperf.plans.plan_files import SetPlan

with script(snakemake.log[0]):
    SetPlan.read(SET_PLAN.format(**snakemake.wildcards)).data.of_kind.embed()
