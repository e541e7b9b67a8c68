"""One rank of a training with a narrow classifier, in the environment of its system.

`kept_ranks.py FILE ..` trains as the program of all systems does with the flags that follow, and
leaves the rank's last weights in FILE.0.npz or, of rank 1, in FILE.1.npz.
"""

import sys

import numpy as np
from trainers.contract import driver
from trainers.contract.backend import place_in
from trainers.recipes import plain

HIDDEN = 256


class Kept(driver.Watched):
    """Weights that are also in a file when their digest is asked for, at the end."""

    def digest(self):
        rank = place_in("RANK", "LOCAL_RANK", "WORLD_SIZE").rank
        np.savez(f"{sys.argv[1]}.{rank}.npz", **dict(self._read()))
        return super().digest()


def main():
    plain.HIDDEN = HIDDEN
    driver.Watched = Kept
    driver.run(sys.argv[2:])


if __name__ == "__main__":
    main()
