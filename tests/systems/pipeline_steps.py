"""Steps of a Step on its own: one process of several, started by torchrun, or one alone.

It takes a folder and, as JSON, what to train; it writes losses and weights of each case and rank
there. A case has flags, its system's parts, steps, and whether each rank trains alone. Before the
steps comes the loss without dropout, unless it is a proof.
"""

import json
import sys
from importlib import import_module
from pathlib import Path

import numpy as np
from trainers.contract import driver
from trainers.contract.flags import parse_flags
from trainers.contract.stages import readers_of

FLAGS = (
    *("--precision=fp32", "--iterations=1", "--print-every=1", "--input=synthetic"),
    *("--device=cpu", "--threads=1", "--seed=1"),
)


def main(folder, asked):
    workload = asked["workload"]
    recipe = import_module(f"trainers.recipes.{asked['recipe']}")
    made = None
    for name, case in asked["cases"].items():
        flags = parse_flags(recipe, [f"--workload={workload}", *FLAGS, *case["flags"]])
        flags.backend, flags.model, flags.part = "torch.backend", asked["model"], case["parts"]
        made = made or driver.made(flags)
        made.flags, place = flags, made.place
        if case["alone"]:
            made.place = place._replace(rank=0, world_size=1)
        size = flags.batch_size * readers_of(flags, made.place.world_size)
        work = driver.Work(recipe, flags, size, made.computes)
        step = work.step(made)
        losses = [] if flags.proof else [step.without_dropout()]
        losses += [step.fetch(step(True)) for _ in range(case["steps"])]
        kept = {key: np.array(weight) for key, weight in step.weights()}
        made.place = place
        np.savez(Path(folder, f"{name}.{place.rank}.npz"), losses=losses, **kept)
    made.leave()


if __name__ == "__main__":
    main(sys.argv[1], json.loads(sys.argv[2]))
