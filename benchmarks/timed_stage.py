"""A rank of benchmarks/pipelines.py: it trains as ever and, in a pipeline, says what it did.

`timed_stage.py 3 ..` leaves out the first three iterations. What torch computes is timed, and so
are waits. Of the CPU time of its thread, what torch does not compute is what the pipeline costs:
messages, versions, checks, the loop.
"""

import json
import os
import sys
import time
from importlib import import_module

from trainers.contract import driver

spent = {"compute": 0.0, "cpu": 0.0}


def timed(function):
    """The same function, whose time counts as computing."""

    def call(*arguments, **more):
        begun, used = time.perf_counter(), time.thread_time()
        try:
            return function(*arguments, **more)
        finally:
            spent["compute"] += time.perf_counter() - begun
            spent["cpu"] += time.thread_time() - used

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
            mine = {"seconds": time.perf_counter(), "busy": time.thread_time(), **spent}
            return {**mine, **self.waits.seconds}

        def __call__(self, wanted):
            if self._iteration == warmup:
                self.begun = self.now()
            return super().__call__(wanted)

        def finish(self):
            said = {name: end - self.begun.get(name, 0.0) for name, end in self.now().items()}
            said["who"] = self._who(self._backend.place.rank)
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
