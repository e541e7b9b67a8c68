"""TensorFlow 1.15 with Horovod on one device, as trainers.contract.trial tries it."""

import horovod.tensorflow as hvd
import tensorflow

from trainers.frameworks.horovod import library_of
from trainers.frameworks.tensorflow.engine1 import RANK, WORLD_SIZE, prepare_device
from trainers.frameworks.tensorflow.shared import convolved_by

tf = tensorflow.compat.v1


class Devices:
    ranks, world_size = (RANK,), WORLD_SIZE

    def __init__(self, flags):
        settings, name = prepare_device(flags)
        tf.enable_eager_execution(settings)
        self._device = "/gpu:0" if flags.device == "cuda" else "/cpu:0"
        self.names = [name]
        self.library = library_of(hvd, flags.device)

    def convolve(self, images, filters):
        with tf.device(self._device):
            return [convolved_by(tf, images, filters)]

    def multiply(self, left, right):
        with tf.device(self._device):
            return [tf.matmul(left, right).numpy()]

    def ones(self, count):
        with tf.device(self._device):
            return tf.ones(count)

    def all_reduce(self, numbers):
        with tf.device(self._device):
            summed = hvd.allreduce(numbers, op=hvd.Sum)
            summed[0].numpy()  # waits for all
        return summed

    def arrays(self, numbers):
        return [numbers.numpy()]

    def leave(self):
        hvd.shutdown()
