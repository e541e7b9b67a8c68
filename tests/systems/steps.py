"""Steps of a Step on its own, on ranks that a launcher has started: `steps.py CASES [FOLDER]`.

CASES are flags by name, as JSON; of a case named `alone` each rank trains alone. With a folder,
each rank leaves losses and weights of each case in it: of a proof after three steps, else before
the first one, with the loss without dropout. Without one, the first rank prints what six steps of
each case came to, as JSON by name.
"""

import json
import os
import sys
from importlib import import_module
from pathlib import Path

import numpy as np
from kept_ranks import HIDDEN
from trainers.contract import driver
from trainers.contract.stages import readers_of
from trainers.recipes import plain


def parsed(argv):
    """The recipe and the flags of a trainer's command line."""
    names, others = driver.parse_names(argv)
    recipe = import_module(f"trainers.recipes.{names.recipe}")
    flags = driver.parse_flags(recipe, others)
    vars(flags).update(vars(names))
    return recipe, flags


def steps_of(cases):
    """Each case's name, its backend and its Step."""
    backend = None
    for name, given in cases.items():
        recipe, flags = parsed(given)
        backend = backend or driver.backend_of(flags)
        backend.flags, place = flags, backend.place
        if name.startswith("alone"):
            backend.place = place._replace(rank=0, world_size=1)
        size = flags.batch_size * readers_of(flags, backend.place.world_size)
        yield name, backend, driver.Work(recipe, flags, size, backend.computes).step(backend)
        backend.place = place


def keep(cases, folder):
    plain.HIDDEN = HIDDEN
    for name, backend, step in steps_of(cases):
        losses = [step.fetch(step(True)) for _ in range(3 * backend.flags.proof)]
        losses = losses or [step.without_dropout()]
        kept = {key: np.array(weight) for key, weight in step.arrays()}
        np.savez(Path(folder, f"{name}.{os.environ['RANK']}.npz"), losses=losses, **kept)
    backend.disconnect()


def say(cases):
    came_to = {}
    for name, backend, step in steps_of(cases):
        compile_by_aot_alone()  # from the second case on
        step.begin()
        losses = [step.fetch(step(True)) for _ in range(backend.flags.iterations)]
        if name == "drifted" and backend.place.rank == 1:
            step.held(step._network.norm.weight.detach()).add_(1e-3)
        try:
            refused = step.finish()
        except driver.Refused as error:
            refused = str(error)
        parts = dict(backend.gather([step.model_part, step.size()]))
        came_to[name] = {
            "losses": backend.gather(losses),
            "parts": parts,
            "tokens": step.feed.counted(1)["tokens"],
            "refused": refused,
        }
    if backend.place.rank == 0:
        print("\n" + json.dumps(came_to), flush=True)
    backend.leave()


def compile_by_aot_alone():
    """Leave out torch's compiler of kernels: what compiled layers get wrong, they do without it."""
    from torch import nn  # noqa: PLC0415 - once the backend has made ready for it

    of_torch = nn.Module.compile
    if of_torch.__name__ == "compile":
        nn.Module.compile = lambda layer: of_torch(layer, backend="aot_eager")


if __name__ == "__main__":
    cases, *folder = sys.argv[1:]
    (keep if folder else say)(json.loads(cases), *folder)
