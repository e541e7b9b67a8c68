"""A rank of benchmarks/pipelines.py: it trains as ever and, in a pipeline, says what it did.

`timed_stage.py 3 ..` leaves out the first three iterations. What torch computes is timed, and so
are waits; what is left is what the pipeline itself costs: messages, versions, checks, the loop.
"""

import json
import os
import sys
import time
from importlib import import_module

from trainers.contract import driver

spent = {"compute": 0.0}


def timed(function):
    """The same function, whose time counts as computing."""

    def call(*arguments, **more):
        begun = time.perf_counter()
        try:
            return function(*arguments, **more)
        finally:
            spent["compute"] += time.perf_counter() - begun

    return call


def watched(pipedream, warmup):
    """The class of a pipeline's stage, as one that says at its end what it has done."""
    torch = pipedream.torch

    class Timed(pipedream.Stage):
        def begin(self):
            torch.autograd.grad = timed(torch.autograd.grad)
            self._network.forward = timed(self._network.forward)
            self._optimizer.step = timed(self._optimizer.step)
            super().begin()

        def now(self):
            return time.perf_counter(), spent["compute"], dict(self.waits.seconds)

        def __call__(self, wanted):
            if self._iteration == warmup:
                self.begun = self.now()
            return super().__call__(wanted)

        def finish(self):
            (begun, computed, waited), (end, compute, waits) = self.begun, self.now()
            waits = {what: second - waited.get(what, 0.0) for what, second in waits.items()}
            said = {"who": self._who(self._made.place.rank), "seconds": end - begun, "waits": waits}
            said["compute"] = compute - computed
            said["other"] = said["seconds"] - said["compute"] - sum(waits.values())
            os.write(1, f":::SHARES {json.dumps(said)}\n".encode())
            super().finish()

    return Timed


def main():
    made, warmup = driver.made, int(sys.argv[1])

    def made_and_watched(flags):
        backend = made(flags)
        if flags.pipeline:
            pipedream = import_module("trainers.frameworks.torch.pipedream")
            pipedream.Stage = watched(pipedream, warmup)
        return backend

    driver.made = made_and_watched
    driver.run(sys.argv[2:])


if __name__ == "__main__":
    main()
