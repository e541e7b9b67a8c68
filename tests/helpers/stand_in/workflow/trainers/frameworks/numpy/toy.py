"""The toy for numpy: its model, its reader, and all that can go wrong with a run."""

import os
import signal
import socket
import time
from pathlib import Path

import numpy as np

from trainers.contract.steplog import Refused
from trainers.frameworks.numpy.before import PLACE
from trainers.inputs.tfrecord import Records
from trainers.recipes import toy


class Toy:
    """Gives the mean cross-entropy of byte shares [N, 256] and labels [N], and its gradients."""

    def __init__(self, flags):
        if flags.batch_size > flags.shape["fits"]:
            raise MemoryError("no memory left for %d samples" % flags.batch_size)
        self._shape, self._iteration = flags.shape, 0

    def __call__(self, weights, shares, labels):
        time.sleep(self._shape["milliseconds"] / 1000)
        if self._iteration == 1 and socket.gethostname() == "node%d" % self._shape["flips"]:
            weights["fc.weight"][0, 0] *= -1
        if PLACE.rank == PLACE.world_size - 1:
            self._go_wrong()
        self._iteration += 1
        logits = shares @ weights["fc.weight"].T + weights["fc.bias"]
        chances = np.exp(logits - logits.max(axis=1, keepdims=True))
        chances /= chances.sum(axis=1, keepdims=True)
        each = np.arange(len(labels)), labels
        loss = -np.log(chances[each]).mean()
        chances[each] -= 1
        chances /= len(labels)
        return loss, {"fc.weight": chances.T @ shares, "fc.bias": chances.sum(axis=0)}

    def _go_wrong(self):
        if self._iteration == self._shape["dies"]:
            os.kill(os.getpid(), signal.SIGKILL)
        if self._iteration == self._shape["hangs"]:
            os.kill(os.getpid(), signal.SIGSTOP)
        if self._iteration + 1 == self._shape["refuses"]:
            raise Refused("the toy gives up at iteration %d" % (self._iteration + 1))


class Folder:
    """This rank's share of the images under train/<synset>/."""

    def __init__(self, folder, rank, world_size):
        self._files = sorted(Path(folder, "train").glob("*/*"))[rank::world_size]

    def __len__(self):
        return len(self._files)

    def read(self, index):
        return self._files[index].read_bytes(), sum(self._files[index].parent.name.encode())


def files_read(flags, rank, world_size, device):
    """Endless batches of this rank's JPEGs, as the toy takes them."""
    if flags.input == "folder":
        source = Folder(flags.data, rank, world_size)
    else:
        source = Records(flags.data, rank, world_size)
    at = 0
    while True:
        time.sleep(flags.shape["loading"] / 1000)
        chosen = [source.read((at + one) % len(source)) for one in range(flags.batch_size)]
        at += flags.batch_size
        counts = [np.bincount(np.frombuffer(jpeg, np.uint8), minlength=256) for jpeg, _ in chosen]
        shares = np.array([count / count.sum() for count in counts], np.float32)
        yield shares, np.array([label % toy.CLASSES for _, label in chosen])
