"""What the doctor asks of OneFlow."""

import oneflow as flow

from trainers.contract import trial


class Trial(trial.Trial):
    def convolve(self, images, filters):
        return flow.nn.functional.conv2d(images, filters)

    def cast(self, numbers, dtype):
        return numbers.to(getattr(flow, dtype))
