"""Convert a data set to the parts of one record format."""

from pathlib import Path

from reperf.building.script import script
from reperf.layout import SET_PLAN
from reperf.plans.plan_files import SetPlan

with script(snakemake.log[0]):
    data = SetPlan.read(SET_PLAN.format(**snakemake.wildcards)).data
    folder = Path(snakemake.output[0]).parent
    data.of_kind.convert(folder, snakemake.wildcards.format, workers=snakemake.threads)
