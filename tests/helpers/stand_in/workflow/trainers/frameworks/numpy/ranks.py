"""numpy for trainers.contract.driver: ranks of one CPU each, in float32."""

import os
import time
from multiprocessing.connection import Client, Listener

import numpy as np

from trainers.contract import backend as contract


class Backend(contract.Backend):
    """numpy on a CPU; its arrays are the device's numbers, and rank 0 adds up those of all."""

    library = "sockets"

    def __init__(self, flags, place):
        super().__init__(flags, place)
        self._lines = _lines(place) if place.world_size > 1 else []

    def numbers(self, array):
        return array

    def array(self, numbers):
        return numbers

    def all_reduce(self, numbers):
        if self.place.rank:
            self._lines[0].send_bytes(numbers.tobytes())
            return np.frombuffer(self._lines[0].recv_bytes(), numbers.dtype).reshape(numbers.shape)
        for line in self._lines:
            theirs = np.frombuffer(line.recv_bytes(), numbers.dtype)
            numbers = numbers + theirs.reshape(numbers.shape)
        for line in self._lines:
            line.send_bytes(numbers.tobytes())
        return numbers

    def versions(self):
        return {"numpy": np.__version__}

    def put(self, batch):
        return batch

    def step(self, work):
        return Descent(self, work)


class Descent(contract.Step):
    """Gradient descent with momentum, on the whole model."""

    def __init__(self, backend, work):
        self._backend, self._model, self._work = backend, work.model(work.flags), work
        self._weights = {name: np.array(work.start(name)) for name in work.shapes}
        self._moments = {name: np.zeros_like(one) for name, one in self._weights.items()}
        self.feed = contract.Feed(backend, work)

    def weights(self):
        return self._weights.items()

    def __call__(self, wanted):
        loss, gradients = self._model(self._weights, *next(self.feed))
        for name, weight in self._weights.items():
            mean = self._backend.all_reduce(gradients[name]) / self._backend.place.world_size
            moment = self._moments[name]
            moment *= self._work.optimizer.momentum
            moment += mean + self._work.decay(name) * weight
            weight -= self._work.rate * moment  # noqa: PLW2901 - in place
        return loss

    def alone(self):
        batch = next(self.feed)
        seconds = contract.seconds_alone(lambda: self._model(self._weights, *batch))
        # Spoil the model, as frameworks may: a record's weights must have been read before.
        self._weights["fc.bias"] += self._backend.place.rank
        return seconds

    def fetch(self, loss):
        return float(loss)


def _lines(place):
    """Rank 0's connections to all others, or another rank's to rank 0, which may come later."""
    host, port = os.environ["FIRST"].rsplit(":", 1)
    if not place.rank:
        with Listener(("", int(port)), backlog=place.world_size) as door:
            lines = [door.accept() for _ in range(place.world_size - 1)]
        return sorted(lines, key=lambda line: line.recv())  # sums then have one order
    while True:
        try:
            line = Client((host, int(port)))
        except ConnectionRefusedError:
            time.sleep(0.02)
        else:
            line.send(place.rank)
            return [line]
