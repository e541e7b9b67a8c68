"""What the doctor asks of MXNet."""

import mxnet as mx

from trainers.contract import trial


class Trial(trial.Trial):
    def convolve(self, images, filters):
        output, _, *kernel = filters.shape
        how = {"kernel": kernel, "num_filter": output, "no_bias": True}
        return mx.nd.Convolution(images, filters, **how)

    def multiply(self, left, right):
        return mx.nd.dot(left, right)
