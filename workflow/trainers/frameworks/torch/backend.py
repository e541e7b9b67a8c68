"""PyTorch for trainers.contract.driver: one process per device, started by torchrun.

A model is a module, made from the flags, that takes a batch and returns its mean loss; its
parameters have the order and the sizes of the recipe's weight_shapes. It may have a function
`prepared`, of a batch on the host: what it returns is what the module takes.
"""

from contextlib import nullcontext
from functools import partial

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from trainers.contract import backend as contract
from trainers.contract import settings
from trainers.contract.precision import DYNAMIC
from trainers.contract.recipe import AdamW
from trainers.frameworks.torch import float8
from trainers.frameworks.torch.inputs import on_device, prepared

TORCH = tuple(map(int, torch.__version__.split(".")[:2]))
# torch.amp has it from 2.3 on, and torch.cuda.amp warns of its own from then on.
GradScaler = getattr(torch.amp, "GradScaler", torch.cuda.amp.GradScaler)


class Backend(contract.Backend):
    computes = {"cpu": ("bfloat16",), "cuda": ("float16", "bfloat16", "tf32")}

    def __init__(self, flags, place):
        super().__init__(flags, place)
        torch.set_num_threads(flags.threads)
        if flags.device == "cpu":
            device = torch.device("cpu")
        elif torch.cuda.device_count() <= place.local_rank:
            count = torch.cuda.device_count()
            what = f"torch sees {count} GPUs, local rank {place.local_rank} needs another"
            raise contract.no_gpu(what, "pytorch")
        else:
            device = torch.device("cuda", place.local_rank)
            torch.cuda.set_device(device)
            torch.backends.cudnn.benchmark = settings.switched("cudnn.benchmark", True)
            # Also in kernels that torch compiles, where no library of NVIDIA's is.
            tf32 = flags.precision == "tf32"
            torch.backends.cudnn.allow_tf32 = settings.switched("cudnn.allow_tf32", tf32)
            torch.backends.cuda.matmul.allow_tf32 = settings.switched("matmul.allow_tf32", tf32)
            self.device_name = torch.cuda.get_device_name(device)
        self.device = self.reader_device = device
        if TORCH >= (2, 10) and float8.computes_on(device):  # older ones have not been tried
            there = self.computes[flags.device]
            self.computes = {**self.computes, flags.device: (*there, "float8")}
        torch.manual_seed(flags.seed + place.rank)  # for dropout
        if place.world_size > 1:
            self.library = self._connect()

    def _connect(self):
        if self.device.type == "cpu":
            dist.init_process_group("gloo")
            return "gloo"
        # Older ones take the current device, which is the same.
        dist.init_process_group("nccl", **({"device_id": self.device} if TORCH >= (2, 3) else {}))
        return "NCCL " + ".".join(map(str, torch.cuda.nccl.version()))

    def numbers(self, array):
        return torch.from_numpy(array).to(self.device)

    def array(self, numbers):
        return numbers.cpu().numpy()

    def all_reduce(self, numbers):
        dist.all_reduce(numbers)
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)
        return numbers

    def versions(self):
        found = {"torch": torch.__version__}
        if torch.version.cuda:
            found["cuda"] = torch.version.cuda
            found["cudnn"] = str(torch.backends.cudnn.version())
            found["nccl"] = ".".join(map(str, torch.cuda.nccl.version()))
        return found

    def gpu_memory(self):
        return torch.cuda.max_memory_allocated(self.device)

    def settled(self):
        if self.device.type == "cuda":
            torch.cuda.reset_accumulated_memory_stats(self.device)

    def allocation_retries(self):
        if self.device.type == "cpu":
            return None
        return torch.cuda.memory_stats(self.device).get("num_alloc_retries", 0)

    def mark(self):
        if self.device.type == "cpu":
            return None
        end = torch.cuda.Event()
        end.record()
        return contract.idle_since(end.query)

    def put(self, batch):
        return [tensor.to(self.device) for tensor in batch]

    def placed(self, batches):
        return on_device(batches, self.device)

    def step(self, work):
        return DataParallel(self, work)

    def disconnect(self):
        if dist.is_initialized():
            dist.barrier()


class Step(contract.Step):
    """What all ways to train have in common; `_named` are this rank's weights, by their names."""

    def optimize(self, work, rate):
        """Make what trains the weights, and what computes in the run's precision."""
        make = work.part("optimizer", torch_optimizer)
        self._optimizer = make(work.groups(self._named), rate, work.optimizer)
        kind = type(self._optimizer)
        self.optimizer = f"{kind.__module__.rpartition('.')[0]}.{kind.__name__}"
        self._scaler = make_scaler(work.precision)
        self._mixed = mixed_by(work.precision, work.flags)

    def weights(self):
        return ((name, self.held(weight.detach())) for name, weight in self._named.items())

    def read(self, weight):
        return weight.cpu().numpy()

    @staticmethod
    def held(weight):
        return weight

    def fetch(self, loss):
        return loss.item()


class DataParallel(Step):
    """The whole model on each rank, gradients averaged while they are computed."""

    accumulates = True
    _share, _counts = None, True  # of the Feed: which reader it is, and whether it counts

    def __init__(self, backend, work):
        flags, device = work.flags, backend.device
        self._device = device
        self._dtype = getattr(torch, work.precision.dtype)
        self._network, self._model = self.build(work, backend)
        self._named = work.named(self._network.parameters())
        ready = partial(prepared, network=self._network, device=device)
        self.feed = contract.Feed(backend, work, self._share, ready, self._counts)
        self.optimize(work, work.rate)
        self._clip = work.optimizer.clip
        self._accumulated = flags.accumulation
        self._unaveraged = getattr(self._model, "no_sync", nullcontext)
        if flags.compile:
            self._model = self.compiled()

    def build(self, work, backend):
        """The network, with its start weights, and what computes it on all ranks."""
        network = network_of(work)
        start(work.named(network.parameters()), work)
        return network, self.spread(network, backend)

    def spread(self, network, backend):
        """The model on this rank's device, such that ranks train it together."""
        # The format matters to convolutions alone.
        network.to(backend.device, memory_format=torch.channels_last)
        if backend.place.world_size == 1:
            return network
        return distributed(network, backend.device, same=backend.flags.accumulation == 1)

    def compiled(self):
        return torch.compile(self._model)

    def without_dropout(self):
        self._network.eval()
        with torch.no_grad(), self._mixed:
            loss = self._network(*self.feed.peek()).item()
        self._network.train()
        return loss

    def __call__(self, wanted):
        optimizer, scaler = self._optimizer, self._scaler
        losses = [self._backward(number) for number in range(self._accumulated)]
        if self._clip is not None:
            scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(list(self._named.values()), self._clip)
        scaler.step(optimizer)
        scaler.update()
        return losses[0] if self._accumulated == 1 else torch.stack(losses).mean()

    def pass_alone(self, batch):
        with self._unaveraged():
            with self._mixed:
                loss = self._model(*batch)
            self._scaler.scale(loss).backward()
        if self._device.type == "cuda":
            torch.cuda.synchronize(self._device)  # the loss is ready before its gradients

    def _backward(self, number):
        """Add a batch's part of the gradients to those of the ones before; returns its loss."""
        batch, parts = next(self.feed), self._accumulated
        with nullcontext() if number == parts - 1 else self._unaveraged():
            with self._mixed:
                loss = self._model(*batch)
            if number == 0:
                self._optimizer.zero_grad()  # to None, by torch's default and by apex's
            self._scaler.scale(loss if parts == 1 else loss / parts).backward()
        return loss.detach()  # or what it was computed from would lie beside the next one's


def network_of(work):
    """The model in the run's precision, before it gets its start weights."""
    network = work.model(work.flags)
    return float8.converted(network, work.flags) if work.precision.compute == "float8" else network


def start(weights, work):
    """Give weights, by the recipe's names, what they start from."""
    with torch.no_grad():
        for name, weight in weights.items():
            weight.copy_(torch.from_numpy(work.start(name)))


def torch_optimizer(groups, rate, asked, fused=TORCH >= (2, 4)):
    """torch's own optimizer, in one kernel; before torch 2.4, which has none for CPUs, in a few."""
    how = {"fused": True} if fused else {}
    if isinstance(asked, AdamW):
        betas = asked.beta1, asked.beta2
        return torch.optim.AdamW(groups, lr=rate, betas=betas, eps=asked.epsilon, **how)
    return torch.optim.SGD(groups, lr=rate, momentum=asked.momentum, **how)


def mixed_by(precision, flags):
    """A context, to be entered for each batch, in which a model computes in that precision."""
    if precision.dtype == "float32":
        return nullcontext()
    return torch.autocast(flags.device, getattr(torch, precision.dtype))


def make_scaler(precision):
    """The scaler of a precision: scale(loss), then step(optimizer), then update()."""
    # What looks at gradients before the step asks for unscale_(optimizer) first.
    return GradScaler() if precision.loss_scale == DYNAMIC else FixedScale(precision.factor)


class FixedScale(GradScaler):
    """A power of two, which changes no digit and which no overflow halves; 1 does nothing.

    torch's GradScaler looks for overflows in each step, for which the CPU waits if the optimizer is
    not torch's own. Optimizers are made for scaled gradients, see contract.recipe.at_scale.
    """

    def __init__(self, factor):
        super().__init__(enabled=False)
        self.factor = factor

    def scale(self, loss):
        return loss if self.factor == 1.0 else loss * self.factor


def distributed(network, device, same=True):
    """The model, with gradients averaged over the ranks: in each pass alike if it is the `same`."""
    model = DistributedDataParallel(
        network,
        device_ids=[device] if device.type == "cuda" else None,
        gradient_as_bucket_view=True,
        static_graph=same,
    )
    # Each rank's batch norm sees its own batches. As an argument it has other names in other
    # versions of torch.
    model.broadcast_buffers = False
    return model
