"""MXNet for trainers.contract.driver: one process per device, Horovod between them.

A model is a HybridBlock, made from flags and device, that takes a batch and returns its mean loss,
[1]; its trainable parameters have the order of the recipe's weight_shapes. If it holds some in
another layout, its `arranged` makes, of a weight's name and start, the array that it holds.
"""

import ctypes
import math
import time

import horovod
import horovod.mxnet as hvd
import mxnet as mx
from mxnet import autograd
from mxnet.base import _LIB, check_call
from mxnet.contrib import amp

from trainers.contract import backend as contract
from trainers.contract.affinity import said_of_gpu
from trainers.contract.precision import DYNAMIC
from trainers.frameworks.horovod import connected
from trainers.frameworks.mxnet.images import axes_from
from trainers.frameworks.mxnet.optimizers import Trainer, make_optimizer

# What CPUs compute in float32 alone, and MXNet's own list of that lacks.
LACKS_BFLOAT16 = tuple(f"_contrib_interleaved_matmul_selfatt_{part}" for part in ("qk", "valatt"))


class Backend(contract.Backend):
    gpu_memory_is = "in use"
    computes = {"cpu": ("bfloat16",), "cuda": ("float16",)}
    gpu_groups = 0
    """The number of groups in which GPUs' gradients are averaged; 0 leaves it to Horovod."""

    def __init__(self, flags, place):
        super().__init__(flags, place)
        if flags.device == "cpu":
            check_call(_LIB.MXSetNumOMPThreads(flags.threads))
            device = mx.cpu()
        elif mx.context.num_gpus() <= place.local_rank:
            count = mx.context.num_gpus()
            what = f"mxnet sees {count} GPUs, local rank {place.local_rank} needs another"
            raise contract.no_gpu(what, "mxnet")
        else:
            device = mx.gpu(place.local_rank)
            self.device_name = said_of_gpu("cuDeviceGetName", place.local_rank)
        self.device = self.reader_device = device
        mx.random.seed(flags.seed + place.rank)  # for dropout
        self.library = connected(hvd, flags, place.world_size)

    def numbers(self, array):
        numbers = mx.nd.array(array, self.device, array.dtype)
        numbers.wait_to_read()
        return numbers

    def array(self, numbers):
        return numbers.asnumpy()

    def all_reduce(self, numbers):
        summed = hvd.allreduce(numbers, average=False)
        summed.wait_to_read()
        return summed

    def versions(self):
        return {"mxnet": mx.__version__, "horovod": horovod.__version__}

    def gpu_memory(self):
        """MXNet returns none before it ends, so what is in use now is the peak."""
        free, total = mx.context.gpu_memory_info(self.device.device_id)
        return total - free

    def put(self, batch):
        """Images have the device's layout, labels and the like are float32: AMP takes no int64."""
        return [self._put(array) for array in batch]

    def _put(self, array):
        if isinstance(array, mx.nd.NDArray):
            return array.as_in_context(self.device)
        if array.ndim == 4:  # of all arrays images alone: [N, H, W, 3]
            array = array.transpose(axes_from("NHWC", self.device))
        return mx.nd.array(array, self.device, "float32" if array.dtype == "int64" else array.dtype)

    def step(self, work):
        return DataParallel(self, work)

    def disconnect(self):
        hvd.shutdown()


class DataParallel(contract.Step):
    """The whole model on each rank; Horovod averages gradients before the weights' update."""

    def __init__(self, backend, work):
        precision, device = work.precision, backend.device
        if precision.compute != "float32":
            mix_in(precision.compute)  # before a model is made
        self._network = network = work.model(work.flags, device)
        network.initialize(mx.init.Zero(), ctx=device)
        trained = [one for one in network.collect_params().values() if one.grad_req != "null"]
        self._named = work.named(trained)
        arranged = getattr(network, "arranged", lambda name, start: start)
        for name, weight in self._named.items():
            weight.set_data(mx.nd.array(arranged(name, work.start(name))))
            weight.wd_mult = float(work.recipe.decays(name))
        # Now there is what each iteration writes last, after which to mark.
        backend.mark = Marks(weight.data() for weight in trained).mark
        self.feed = contract.Feed(backend, work)
        optimizer = make_optimizer(work.optimizer, device, learning_rate=work.rate)
        groups = backend.gpu_groups if work.flags.device == "cuda" else 0
        clip = work.optimizer.clip
        self._trainer = Trainer(network.collect_params(), optimizer, clip=clip, groups=groups)
        self._scale = mx.nd.full(1, precision.factor, ctx=device)
        if precision.loss_scale == DYNAMIC:  # which MXNet itself applies
            amp.init_trainer(self._trainer)
            self._scale = None

    def weights(self):
        return self._named.items()

    def read(self, weight):
        return weight.data().asnumpy()

    def without_dropout(self):
        # Its graph is compiled for this alone, and gives back what memory it took.
        self._network.hybridize()
        return self._network(*self.feed.peek()).asscalar().item()

    def begin(self):
        self._network.hybridize(static_alloc=True, static_shape=True)

    def __call__(self, wanted):
        loss = self._pass(next(self.feed))
        self._trainer.step(1)
        return loss

    def _pass(self, batch):
        with autograd.record():
            loss = self._network(*batch)
            if self._scale is None:
                with amp.scale_loss(loss, self._trainer) as scaled:
                    scaled.backward()
            else:
                loss.backward(self._scale)
        return loss

    def pass_alone(self, batch):
        self._pass(batch)
        mx.nd.waitall()

    def fetch(self, loss):
        # The loss is ready before the gradients: fetching it would not wait for everything.
        mx.nd.waitall()
        return loss.asscalar().item()


def mix_in(compute):
    wide = [*amp.lists.symbol_bf16.FP32_FUNCS, *LACKS_BFLOAT16] if compute == "bfloat16" else None
    amp.init(compute, fp32_ops=wide)


_CPU = 1
"""The kind of device on which a mark is made; mxnet.Context.devstr2type says the same."""


class _Context(ctypes.Structure):  # mxnet::Context, as MXEnginePushSyncND takes it
    _fields_ = (("kind", ctypes.c_int), ("number", ctypes.c_int))


class Marks:
    """Marks in the engine's work, each after the last update of some weights.

    Training runs behind the loop that asks, and nothing waits for a mark: the engine calls a
    function when it gets there. Source: include/mxnet/c_api.h of MXNet 1.9.1, MXEnginePushSyncND.
    """

    def __init__(self, weights):
        self._weights = list(weights)
        handles = [weight.handle for weight in self._weights]
        self._handles = (ctypes.c_void_p * len(handles))(*handles)
        self._newest = 0
        self._passed = 0, -math.inf  # the newest mark that the engine has passed, and when
        self._called = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(self._pass)

    def mark(self):
        """Mark the end of all that the engine has been given; see contract.backend.Feed."""
        self._newest += 1
        called = self._called, ctypes.c_void_p(self._newest), None
        reads, writes = (self._handles, len(self._weights)), (None, 0)
        where = ctypes.byref(_Context(_CPU, 0))
        more = None, 0, b"reperf_mark"
        check_call(_LIB.MXEnginePushSyncND(*called, where, *reads, *writes, *more))
        return self._idle_since

    def _pass(self, _, number):
        self._passed = number, time.perf_counter()

    def _idle_since(self):
        number, seconds = self._passed
        return seconds if number == self._newest else math.inf
