"""MXNet with Horovod on one device, as trainers.contract.trial tries it."""

import horovod.mxnet as hvd
import mxnet as mx

from trainers.frameworks.horovod import library_of
from trainers.frameworks.mxnet.engine import PLAIN, RANK, WORLD_SIZE, device_name, prepare_device


class Devices:
    ranks, world_size = (RANK,), WORLD_SIZE

    def __init__(self, flags):
        self._device = prepare_device(flags, PLAIN)
        self.names = [device_name(self._device)]
        self.library = library_of(hvd, flags.device)

    def convolve(self, images, filters):
        images, filters = (mx.nd.array(one, ctx=self._device) for one in (images, filters))
        output, _, *kernel = filters.shape
        made = mx.nd.Convolution(images, filters, kernel=kernel, num_filter=output, no_bias=True)
        return [made.asnumpy()]

    def multiply(self, left, right):
        left, right = (mx.nd.array(one, ctx=self._device) for one in (left, right))
        return [mx.nd.dot(left, right).asnumpy()]

    def ones(self, count):
        numbers = mx.nd.ones(count, ctx=self._device)
        numbers.wait_to_read()
        return numbers

    def all_reduce(self, numbers):
        summed = hvd.allreduce(numbers, average=False)
        summed.wait_to_read()
        return summed

    def arrays(self, numbers):
        return [numbers.asnumpy()]

    def leave(self):
        hvd.shutdown()
