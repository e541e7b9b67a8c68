"""Steps of a Step on its own, on ranks that torchrun has started: `pipeline_steps.py FOLDER CASES`.

CASES are flags by name, as JSON; of a case named `alone` each rank trains alone. Each rank leaves
losses and weights of each case in FOLDER: of a proof after three steps, else before the first one,
with the loss without dropout.
"""

import json
import sys
from importlib import import_module
from pathlib import Path

import numpy as np
from trainers.contract import driver
from trainers.contract.stages import readers_of


def main(folder, cases):
    made = None
    for name, given in cases.items():
        names, others = driver.parse_names(given)
        recipe = import_module(f"trainers.recipes.{names.recipe}")
        flags = driver.parse_flags(recipe, others)
        vars(flags).update(vars(names))
        made = made or driver.made(flags)
        made.flags, place = flags, made.place
        if name.startswith("alone"):
            made.place = place._replace(rank=0, world_size=1)
        size = flags.batch_size * readers_of(flags, made.place.world_size)
        step = driver.Work(recipe, flags, size, made.computes).step(made)
        losses = [step.fetch(step(True)) for _ in range(3 * flags.proof)]
        losses = losses or [step.without_dropout()]
        kept = {key: np.array(weight) for key, weight in step.arrays()}
        made.place = place
        np.savez(Path(folder, f"{name}.{place.rank}.npz"), losses=losses, **kept)
    made.leave()


if __name__ == "__main__":
    main(sys.argv[1], json.loads(sys.argv[2]))
