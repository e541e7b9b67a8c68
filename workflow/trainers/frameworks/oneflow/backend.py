"""OneFlow for trainers.contract.driver: one process per device, one static graph for an iteration.

A model is a module, made from the flags, that takes the batch of all ranks and returns losses [n],
split evenly over the ranks. Its parameters are the recipe's, in order, but that filters have their
channels last if images do. What reads data is a module, made from flags, rank and world size, that
returns the batch of all ranks.
"""

import re

import oneflow as flow
from oneflow import nn, sysconfig

from trainers.contract import backend as contract
from trainers.contract import settings
from trainers.contract.precision import DYNAMIC
from trainers.contract.recipe import AdamW
from trainers.frameworks.oneflow.inputs import CHANNELS_LAST, FixedBatch


class Backend(contract.Backend):
    gpu_memory_is = "in use"
    computes = {"cuda": ("float16", "tf32")}  # on a CPU its AMP changes nothing

    def __init__(self, flags, place):
        super().__init__(flags, place)
        if flags.device == "cpu":
            flow.set_num_threads(flags.threads)
            self.library = "OneFlow over TCP"
        elif not flow.cuda.is_available():
            raise contract.no_gpu("oneflow sees no GPU", "oneflow")
        else:
            # Try all, and take the fastest.
            heuristic = settings.switched("cudnn.conv_heuristic_search_algo", False)
            flow.backends.cudnn.enable_conv_heuristic_search_algo(heuristic)
            # As in the DLPerf report's runs of OneFlow.
            megabytes = settings.switched("nccl.fusion_threshold_mbytes", 16)
            flow.boxing.nccl.set_fusion_threshold_mbytes(megabytes)
            most = settings.switched("nccl.fusion_max_ops_num", 24)
            flow.boxing.nccl.set_fusion_max_ops_num(most)
            self.library = "NCCL"
            # OneFlow itself knows which of the node's GPUs is this process's.
            self.device_name = flow.cuda.get_device_name()

    def numbers(self, array):
        numbers = flow.tensor(array).to(self.flags.device)
        wait()
        return numbers

    def all_reduce(self, numbers):
        flow.comm.all_reduce(numbers)
        wait()
        return numbers

    def versions(self):
        found = {"oneflow": flow.__version__}
        if self.flags.device == "cuda":
            found["cuda"] = str(sysconfig.get_cuda_version())
        return found

    def gpu_memory(self):
        """OneFlow records no peak; a graph takes its memory when it is compiled, and keeps it."""
        return int(flow._oneflow_internal.GetCUDAMemoryUsed() * 2**20)

    def step(self, work):
        return DataParallel(self, work)

    def disconnect(self):
        flow.comm.barrier()


def wait():
    """Wait until the device has done all that it was given."""
    flow._oneflow_internal.eager.Sync()


class DataParallel(contract.Step):
    """The whole model on each rank, in a graph that takes batches itself: it is its own Feed."""

    def __init__(self, backend, work):
        flags, (rank, _, world_size) = work.flags, backend.place
        self.feed, self._reads, self._counts = self, flags.input != "synthetic", {}
        if self._reads:
            batches = work.batches(flags, rank, world_size)
        else:
            batches = FixedBatch(work.recipe, flags, rank)
        self._model = model = work.model(flags)
        start(work, model)
        model.to_global(flow.placement.all(flags.device), flow.sbp.broadcast)
        self._named = work.named(model.parameters())  # which are others now
        self._judge = Losses(work.precision, model, batches)
        self._iterate = Training(work, model, batches, make_optimizer(work, self._named))

    def weights(self):
        return self._named.items()

    def read(self, weight):
        return weight.to_local().numpy()  # this rank's own copy

    def without_dropout(self):
        # Its reader begins at the first batch, and so does the one of training. The graph stays to
        # the end: OneFlow aborts if a rank gives up a graph while another still sends to it.
        self._model.eval()
        loss = own_mean(self._judge())
        self._model.train()
        return loss

    def __call__(self, wanted):
        losses, counted = self._iterate()
        # Added up on the device, which nothing waits for.
        self._counts = {unit: self._counts.get(unit, 0) + one for unit, one in counted.items()}
        return losses

    def fetch(self, losses):
        wait()  # a graph's outputs can be fetched before the graph has finished
        return own_mean(losses)

    def waited(self):
        return None if self._reads else 0.0

    def counted(self, batches):
        # Each rank may hold a part of a number.
        sums = {unit: one.to_global(sbp=flow.sbp.broadcast) for unit, one in self._counts.items()}
        return {unit: one.to_local().item() for unit, one in sums.items()}


def start(work, model):
    """Give a model's weights, which are not global yet, the values from which they start."""
    with flow.no_grad():
        for name, weight in work.named(model.parameters()).items():
            value = work.start(name)
            last = CHANNELS_LAST and value.ndim == 4  # filters, [out, in, height, width]
            weight.copy_(flow.tensor(value.transpose(0, 2, 3, 1) if last else value))


def own_mean(losses):
    return losses.to_local().numpy().mean().item()


class Losses(nn.Graph):
    """Each call takes one batch and returns the model's losses, split over the ranks."""

    def __init__(self, precision, model, batches):
        super().__init__()
        self.batches, self.model = batches, model
        self.config.enable_amp(precision.compute == "float16")
        self.config.allow_fuse_add_to_output(True)

    def build(self):
        return self.model(*self.batches())


class Training(Losses):
    """Each call trains on one batch, which it reads, or is given.

    It returns the model's losses and, by their units, what the recipe's `counts`, if it has them,
    counts in the batch of all ranks.
    """

    def __init__(self, work, model, batches, optimizer):
        super().__init__(work.precision, model, batches)
        self.counts = getattr(work.recipe, "counts", None)
        self._weights = list(model.parameters())
        self._factor = work.precision.factor
        self._clip = work.optimizer.clip if clips_itself(work.flags) else None
        self.add_optimizer(optimizer)
        self.config.allow_fuse_model_update_ops(True)
        if work.precision.loss_scale == DYNAMIC:
            self.set_grad_scaler(flow.amp.GradScaler())

    def build(self, *batch):
        batch = batch or self.batches()
        losses = self.model(*batch)
        loss = losses.mean()
        (loss if self._factor == 1.0 else loss * self._factor).backward()
        if self._clip is not None:
            clip_together(self._weights, self._clip)
        counted = self.counts(batch) if self.counts else {}
        return losses, {unit: count.to(flow.int64) for unit, count in counted.items()}


def clips_itself(flags):
    """Whether gradients are clipped here, and not by OneFlow's optimizer."""
    # On a CPU its norm of 23 million numbers is up to 2.5 % too small; flow.dot's within 2e-6.
    return flags.device == "cpu"


def clip_together(weights, most):
    """Within a graph, scale all gradients down so that their norm together is within a limit."""
    gradients = [weight.grad.to_global(sbp=flow.sbp.broadcast) for weight in weights]
    flat = [gradient.reshape(-1) for gradient in gradients]
    norm = flow.stack([flow.dot(one, one) for one in flat]).sum().sqrt()
    share = (most / (norm + 1e-6)).clamp(max=1.0)
    for weight, gradient in zip(weights, gradients):
        weight.grad = gradient * share


def make_optimizer(work, weights):
    """The recipe's optimizer for a model whose weights, by name, are global."""
    asked, groups = work.optimizer, work.groups(weights)
    if isinstance(asked, AdamW):
        if clips_itself(work.flags):
            asked = asked._replace(clip=None)
        return AdamWOfOneGroup(groups, work.rate, asked)
    return flow.optim.SGD(groups, lr=work.rate, momentum=asked.momentum)


class AdamWOfOneGroup(flow.optim.AdamW):
    """AdamW that clips all gradients by one norm, where OneFlow clips each group by its own.

    So all weights are in one group, of which not all decay.
    """

    def __init__(self, groups, rate, asked):
        decaying = (group["params"] for group in groups if group["weight_decay"])
        self._decaying = {id(one) for weights in decaying for one in weights}
        whole = {"params": [one for group in groups for one in group["params"]]}
        if asked.clip is not None:
            whole.update(clip_grad_max_norm=asked.clip, clip_grad_norm_type=2.0)
        betas = asked.beta1, asked.beta2
        decay = {"weight_decay": asked.weight_decay}
        super().__init__([whole], lr=rate, betas=betas, eps=asked.epsilon, **decay)

    def _generate_conf_for_graph(self, train_conf, vars_conf):
        found = super()._generate_conf_for_graph(train_conf, vars_conf)
        names = (one.name for weight, one in vars_conf.items() if id(weight) in self._decaying)
        found[0].weight_decay_conf.includes.pattern.extend(f"^{re.escape(name)}$" for name in names)
        return found
