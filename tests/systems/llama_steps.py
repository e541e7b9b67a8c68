"""Six steps of each of several cases on ranks that a launcher has started: `llama_steps.py CASES`.

CASES are flags by name, as JSON. The first rank prints what each case came to, as JSON by name.
"""

import json
import sys
from importlib import import_module

from trainers.contract import driver
from trainers.contract.stages import readers_of


def main(cases):
    made, came_to = None, {}
    for name, given in cases.items():
        names, others = driver.parse_names(given)
        recipe = import_module(f"trainers.recipes.{names.recipe}")
        flags = driver.parse_flags(recipe, others)
        vars(flags).update(vars(names))
        made = made or driver.made(flags)
        made.flags = flags
        if flags.compile:
            by_aot_alone()
        size = flags.batch_size * readers_of(flags, made.place.world_size)
        step = driver.Work(recipe, flags, size, made.computes).step(made)
        step.begin()
        losses = [step.fetch(step(True)) for _ in range(flags.iterations)]
        if name == "drifted" and made.place.rank == 1:
            step.held(step._network.norm.weight.detach()).add_(1e-3)
        try:
            refused = step.finish()
        except driver.Refused as error:
            refused = str(error)
        parts = dict(made.gather([step.part, step.size()]))
        came_to[name] = {
            "losses": made.gather(losses),
            "parts": parts,
            "tokens": step.feed.counted(1)["tokens"],
            "refused": refused,
        }
    if made.place.rank == 0:
        print("\n" + json.dumps(came_to), flush=True)
    made.part()


def by_aot_alone():
    """Leave out torch's compiler of kernels: what compiled layers get wrong, they do without it."""
    from torch import nn  # noqa: PLC0415

    of_torch = nn.Module.compile
    if of_torch.__name__ == "compile":
        nn.Module.compile = lambda layer: of_torch(layer, backend="aot_eager")


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
