"""PyTorch on one device, as trainers.contract.trial tries it."""

import torch
import torch.distributed as dist

from trainers.frameworks.torch.engine import RANK, WORLD_SIZE, device_name, prepare_device


class Devices:
    ranks, world_size = (RANK,), WORLD_SIZE

    def __init__(self, flags):
        self._device = prepare_device(flags)
        self.names = [device_name(self._device)]
        self.library = dist.get_backend() if WORLD_SIZE > 1 else ""
        if self.library == "nccl":
            self.library = "NCCL " + ".".join(map(str, torch.cuda.nccl.version()))

    def convolve(self, images, filters):
        images, filters = (torch.from_numpy(one).to(self._device) for one in (images, filters))
        return [torch.conv2d(images, filters).cpu().numpy()]

    def multiply(self, left, right):
        left, right = (torch.from_numpy(one).to(self._device) for one in (left, right))
        return [(left @ right).cpu().numpy()]

    def ones(self, count):
        return torch.ones(count, device=self._device)

    def all_reduce(self, numbers):
        dist.all_reduce(numbers)
        if self._device.type == "cuda":
            torch.cuda.synchronize(self._device)
        return numbers

    def arrays(self, numbers):
        return [numbers.cpu().numpy()]

    def leave(self):
        if WORLD_SIZE > 1:
            dist.barrier()
            dist.destroy_process_group()
