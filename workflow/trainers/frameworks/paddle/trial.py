"""PaddlePaddle on one device, as trainers.contract.trial tries it."""

from importlib import import_module

from trainers.frameworks.paddle.before import RANK, WORLD_SIZE, prepare, write_to_launcher


class Devices:
    ranks, world_size = (RANK,), WORLD_SIZE

    def __init__(self, flags):
        write_to_launcher()
        prepare(flags)
        engine = import_module("trainers.frameworks.paddle.engine")
        self._paddle, self._dist = engine.paddle, engine.dist
        self._gpu = engine.prepare_device(flags)
        self.names = ["cpu" if self._gpu is None else self._paddle.device.cuda.get_device_name()]
        self.library = "gloo" if self._gpu is None else "NCCL"

    def convolve(self, images, filters):
        images, filters = map(self._paddle.to_tensor, (images, filters))
        return [self._paddle.nn.functional.conv2d(images, filters).numpy()]

    def multiply(self, left, right):
        return [self._paddle.matmul(*map(self._paddle.to_tensor, (left, right))).numpy()]

    def ones(self, count):
        return self._paddle.ones([count], "float32")

    def all_reduce(self, numbers):
        self._dist.all_reduce(numbers)
        if self._gpu is not None:
            self._paddle.device.cuda.synchronize()
        return numbers

    def arrays(self, numbers):
        return [numbers.numpy()]

    def leave(self):
        if WORLD_SIZE > 1:
            self._dist.barrier()
