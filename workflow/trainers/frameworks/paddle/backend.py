"""PaddlePaddle for trainers.contract.driver: one process per device, started by its own launcher.

A model is a layer, made from the flags and a layout, "NCHW" or "NHWC", that takes a batch and
returns its mean loss; its trained parameters have the order and the sizes of the recipe's
weight_shapes, except that nn.Linear's are transposed.
"""

import paddle
import paddle.distributed as dist
from paddle import nn
from paddle.distributed import fleet

from trainers.contract import backend as contract
from trainers.contract import process, settings
from trainers.contract.precision import DYNAMIC
from trainers.contract.recipe import AdamW
from trainers.frameworks.paddle.inputs import on_device


class Backend(contract.Backend):
    computes = {"cuda": ("float16", "bfloat16", "tf32")}  # on a CPU its AMP changes nothing

    def __init__(self, flags, place):
        super().__init__(flags, place)
        paddle.disable_signal_handler()  # it gets in the way of others
        process.abort_late()
        if flags.device == "cpu":
            paddle.set_device("cpu")
            paddle.base.core.set_num_threads(flags.threads)
        elif not paddle.is_compiled_with_cuda() or not paddle.device.cuda.device_count():
            raise contract.no_gpu("paddlepaddle sees no GPU", "paddlepaddle")
        else:
            paddle.set_device("gpu")  # the one that the launcher chose
            # Of 16-bit images, channels last, cuDNN has batch norms of its own.
            for flag in ("cudnn_exhaustive_search", "cudnn_batchnorm_spatial_persistent"):
                name = f"FLAGS_{flag}"
                paddle.set_flags({name: settings.switched(name, True)})
            # Of its own Paddle takes TF32 for both.
            for switch in ("cublas_switch", "cudnn_switch"):
                tf32 = settings.switched(switch, flags.precision == "tf32")
                getattr(paddle.base.core, f"set_{switch}")(tf32)
            self.reader_device = dist.ParallelEnv().device_id
            self.device_name = paddle.device.cuda.get_device_name()
        if place.world_size > 1:
            fleet.init(is_collective=True)
            self.library = "gloo" if flags.device == "cpu" else "NCCL"
        paddle.seed(flags.seed + place.rank)  # for dropout

    def numbers(self, array):
        return paddle.to_tensor(array)

    def all_reduce(self, numbers):
        dist.all_reduce(numbers)
        if self.flags.device == "cuda":
            paddle.device.cuda.synchronize()
        return numbers

    def versions(self):
        found = {"paddlepaddle": paddle.__version__}
        if paddle.is_compiled_with_cuda():
            found["cuda"] = paddle.version.cuda()
            found["cudnn"] = paddle.version.cudnn()
        return found

    def gpu_memory(self):
        return paddle.device.cuda.max_memory_allocated()

    def mark(self):
        if self.flags.device == "cpu":
            return None
        end = paddle.device.cuda.Event()
        end.record()
        return contract.idle_since(end.query)

    def put(self, batch):
        return list(map(paddle.to_tensor, batch))

    def placed(self, batches):
        return on_device(batches)

    def step(self, work):
        return DataParallel(self, work)

    def disconnect(self):
        if self.place.world_size > 1:
            dist.barrier()


class DataParallel(contract.Step):
    """The whole model on each rank, gradients averaged while they are computed."""

    def __init__(self, backend, work):
        self._backend, precision = backend, work.precision
        fp32 = precision.dtype == "float32"
        self._mixed = {"enable": False} if fp32 else {"dtype": precision.dtype}
        dynamic = precision.loss_scale == DYNAMIC
        # With a fixed scale Paddle's own scaler, too, would look for overflows: the CPU would wait
        # for each step.
        self._scaler = paddle.amp.GradScaler(enable=dynamic)
        self._scale = precision.factor
        self.feed = contract.Feed(backend, work)
        # A GPU's 16-bit units want channels last.
        self.network = network = work.model(work.flags, "NCHW" if fp32 else "NHWC")
        # Paddle's own list holds running averages, too.
        trained = [weight for weight in network.parameters() if not weight.stop_gradient]
        self._named = work.named(trained)
        # Paddle's linear layers are [features, classes].
        turned = {id(one.weight) for one in network.sublayers() if isinstance(one, nn.Linear)}
        for name, weight in self._named.items():
            value = work.start(name)
            weight.set_value(value.T if id(weight) in turned else value)
        self._optimizer = make_optimizer(work, self._named)

    def weights(self):
        return self._named.items()

    def read(self, weight):
        return weight.numpy()

    def without_dropout(self):
        self.network.eval()
        with paddle.amp.auto_cast(**self._mixed), paddle.no_grad():
            loss = self.network(*self.feed.peek()).item()
        self.network.train()
        return loss

    def begin(self):
        if self._backend.flags.device == "cuda":
            compile_once(self.network)
        several = self._backend.place.world_size > 1
        self._model = fleet.distributed_model(self.network) if several else self.network

    def __call__(self, wanted):
        loss = self._backward(next(self.feed))
        self._scaler.step(self._optimizer)
        self._scaler.update()
        self._optimizer.clear_grad()
        return loss

    def _backward(self, batch):
        with paddle.amp.auto_cast(**self._mixed):
            loss = self._model(*batch)
        self._scaler.scale(loss if self._scale == 1.0 else loss * self._scale).backward()
        return loss

    def pass_alone(self, batch):
        with self._model.no_sync():
            self._backward(batch)
        if self._backend.flags.device == "cuda":
            paddle.device.cuda.synchronize()

    def fetch(self, loss):
        return loss.item()


def compile_once(network):
    """Have a model run as one static graph, as PaddleClas trains; on a CPU it is no faster."""
    paddle.jit.to_static(network, full_graph=True)


def make_optimizer(work, weights):
    """The recipe's optimizer."""
    asked = work.optimizer
    if isinstance(asked, AdamW):
        # Paddle clips each group by a norm of its own: all weights are in one.
        decayed = {weight.name for name, weight in weights.items() if work.decay(name)}
        return paddle.optimizer.AdamW(
            work.rate,
            *(asked.beta1, asked.beta2, asked.epsilon),
            parameters=list(weights.values()),
            weight_decay=asked.weight_decay,
            apply_decay_param_fun=decayed.__contains__,
            grad_clip=asked.clip and nn.ClipGradByGlobalNorm(asked.clip),
        )
    groups = work.groups(weights)
    return paddle.optimizer.Momentum(
        work.rate, asked.momentum, parameters=groups, use_multi_tensor=True
    )
