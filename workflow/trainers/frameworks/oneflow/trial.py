"""OneFlow on one device, as trainers.contract.trial tries it."""

from importlib import import_module

from trainers.frameworks.oneflow.before import RANK, WORLD_SIZE, prepare


class Devices:
    ranks, world_size = (RANK,), WORLD_SIZE

    def __init__(self, flags):
        prepare(flags)
        engine = import_module("trainers.frameworks.oneflow.engine")
        engine.prepare_device(flags)
        self._flow, self._device = engine.flow, flags.device
        self.leave = engine.leave_together
        self.names = [engine.device_name(flags)]
        self.library = "NCCL" if flags.device == "cuda" else "OneFlow over TCP"

    def convolve(self, images, filters):
        images, filters = (self._flow.tensor(one).to(self._device) for one in (images, filters))
        return [self._flow.nn.functional.conv2d(images, filters).numpy()]

    def multiply(self, left, right):
        left, right = (self._flow.tensor(one).to(self._device) for one in (left, right))
        return [self._flow.matmul(left, right).numpy()]

    def ones(self, count):
        numbers = self._flow.ones(count, device=self._device)
        self._wait()
        return numbers

    def all_reduce(self, numbers):
        self._flow.comm.all_reduce(numbers)
        self._wait()
        return numbers

    def arrays(self, numbers):
        return [numbers.numpy()]

    def _wait(self):
        self._flow._oneflow_internal.eager.Sync()
