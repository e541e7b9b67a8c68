"""What the doctor asks of PaddlePaddle, and of its 1.8, whose numbers are numpy's arrays."""

import numpy as np
import paddle

from trainers.contract import trial


class Trial(trial.Trial):
    def convolve(self, images, filters):
        if not isinstance(images, np.ndarray):
            return paddle.nn.functional.conv2d(images, filters)
        fluid = paddle.fluid
        initial = fluid.initializer.NumpyArrayInitializer(filters)
        with fluid.dygraph.guard(fluid.CPUPlace()):
            sizes = filters.shape[1], len(filters), filters.shape[2:]
            layer = fluid.dygraph.Conv2D(*sizes, param_attr=initial, bias_attr=False)
            return layer(fluid.dygraph.to_variable(images)).numpy()

    def multiply(self, left, right):
        if not isinstance(left, np.ndarray):
            return left @ right
        fluid = paddle.fluid
        with fluid.dygraph.guard(fluid.CPUPlace()):
            return fluid.layers.matmul(*map(fluid.dygraph.to_variable, (left, right))).numpy()
