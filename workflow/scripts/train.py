"""Train once: the run's log and record."""

import os

from reperf.config import Run
from reperf.script import script
from reperf.training.places import place_of
from reperf.training.train import train

with script(snakemake.log[0]):
    run = Run.model_validate(snakemake.params.run)
    train(
        run,
        place_of(run, snakemake.params.cluster),
        time_limit=snakemake.resources.time_limit,
        attempt=snakemake.resources.attempt,
        last_attempt=snakemake.resources.attempt >= int(os.environ["REPERF_TRIES"]),
    )
