"""TensorFlow 2 on one device, as trainers.contract.trial tries it."""

import tensorflow as tf

from trainers.frameworks.tensorflow.engine2 import (
    RANK,
    WORLD_SIZE,
    device_name,
    make_strategy,
    prepare_device,
)
from trainers.frameworks.tensorflow.shared import convolved_by


class Devices:
    ranks, world_size = (RANK,), WORLD_SIZE

    def __init__(self, flags):
        self._device = prepare_device(flags)
        self._strategy = make_strategy(self._device)
        self.names = [device_name(self._device)]
        self.library = "NCCL" if flags.device == "cuda" else "TensorFlow over gRPC"

    def convolve(self, images, filters):
        with tf.device(self._device):
            return [convolved_by(tf, images, filters)]

    def multiply(self, left, right):
        with tf.device(self._device):
            return [tf.matmul(left, right).numpy()]

    def ones(self, count):
        return self._strategy.run(_ones, args=(tf.constant(count),))

    def all_reduce(self, numbers):
        summed = self._summed(numbers)
        for one in self._strategy.experimental_local_results(summed):
            one[0].numpy()  # waits for all
        return summed

    @tf.function(autograph=False, reduce_retracing=True)
    def _summed(self, numbers):
        return self._strategy.run(_sum, args=(numbers,))

    def arrays(self, numbers):
        return [one.numpy() for one in self._strategy.experimental_local_results(numbers)]

    def leave(self):
        """Nothing is to be left: workers wait for each other when they end."""


@tf.function(autograph=False)
def _ones(count):
    return tf.ones([count])


def _sum(numbers):
    # An argument is on no device, of which TensorFlow would complain.
    numbers = tf.identity(numbers)
    return tf.distribute.get_replica_context().all_reduce("sum", numbers)
