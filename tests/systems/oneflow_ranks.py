"""What each of OneFlow's ranks reads: its reader shares the parts by the ranks that there are.

Started by trainers.launchers.oneflow with a folder, a number of batches and the trainer's flags as
JSON; each rank leaves its images and labels in the folder, as <rank>.npz.
"""

import json
import sys
from argparse import Namespace
from pathlib import Path

import numpy as np
import oneflow as flow
from trainers.frameworks.oneflow.inputs import RecordImages


class Reading(flow.nn.Graph):
    def __init__(self, batches):
        super().__init__()
        self.batches = batches

    def build(self):
        return self.batches()


def main(folder, count, flags):
    rank, world_size = flow.env.get_rank(), flow.env.get_world_size()
    read = Reading(RecordImages(Namespace(**json.loads(flags)), rank, world_size))
    given = [[part.to_local().numpy() for part in read()] for _ in range(int(count))]
    images, labels, _ = map(np.stack, zip(*given, strict=True))
    np.savez(Path(folder, f"{rank}.npz"), images=images, labels=labels)


if __name__ == "__main__":
    main(*sys.argv[1:])
