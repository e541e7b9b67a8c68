"""What each of OneFlow's ranks reads: its reader shares the parts by the ranks that there are.

Started by trainers.launchers.ranks with a folder, a number of batches and the trainer's flags as
JSON; each rank leaves its images and labels in the folder, as <rank>.npz.
"""

import json
import sys
from argparse import Namespace
from importlib import import_module
from pathlib import Path

import numpy as np
from trainers.frameworks.oneflow.before import PLACE, prepare


def main(folder, count, flags):
    flags = Namespace(**json.loads(flags))
    # Ranks meet and leave as a trainer's do, for those that miss another one abort.
    prepare(flags)
    oneflow, inputs = (
        import_module(f"trainers.frameworks.oneflow.{name}") for name in ("backend", "inputs")
    )
    backend, (rank, _, world_size) = oneflow.Backend(flags, PLACE), PLACE
    nn = import_module("oneflow").nn

    class Reading(nn.Graph):
        """Each call takes one batch."""

        def __init__(self):
            super().__init__()
            self.batches = inputs.RecordImages(flags, rank, world_size)

        def build(self):
            return self.batches()

    read = Reading()
    given = [[part.to_local().numpy() for part in read()] for _ in range(int(count))]
    images, labels, _ = map(np.stack, zip(*given, strict=True))
    np.savez(Path(folder, f"{rank}.npz"), images=images, labels=labels)
    backend.disconnect()


if __name__ == "__main__":
    main(*sys.argv[1:])
