"""OneFlow for trainers.contract.driver, not run: one static graph reads, trains and counts.

A model is a module, made from the flags, that takes the batch of all ranks and returns losses [n],
split evenly over the ranks; their mean is the loss. What reads data is a module that returns the
batch of all ranks.
"""

import re
import time

import numpy as np
import oneflow as flow
from oneflow import nn, sysconfig

from trainers.contract import backend, process
from trainers.contract.precision import DYNAMIC
from trainers.contract.recipe import AdamW
from trainers.contract.steplog import Refused
from trainers.frameworks.oneflow.images import CHANNELS_LAST
from trainers.frameworks.oneflow.inputs import FixedBatch


class Backend(backend.Backend):
    # On a CPU its AMP changes nothing.
    mixed = {"cuda": ("float16",)}

    def __init__(self, flags, place):
        super().__init__(flags, place)
        if flags.device == "cpu":
            flow.set_num_threads(flags.threads)
        elif not flow.cuda.is_available():
            raise Refused(
                "oneflow sees no GPU; allowed: a build for GPUs, such as the image of "
                "envs/oneflow.image.yaml, on GPUs"
            )
        else:
            flow.backends.cudnn.enable_conv_heuristic_search_algo(False)  # try all
            # As in the DLPerf report's runs of OneFlow.
            flow.boxing.nccl.set_fusion_threshold_mbytes(16)
            flow.boxing.nccl.set_fusion_max_ops_num(24)
            self.device_name = flow.cuda.get_device_name()
        self.library = "NCCL" if flags.device == "cuda" else "OneFlow over TCP"

    def numbers(self, array):
        made = flow.tensor(array).to(self.flags.device)
        self.wait()
        return made

    def array(self, numbers):
        return numbers.numpy()

    def all_reduce(self, numbers):
        flow.comm.all_reduce(numbers)  # DOUBT: of int64; today counts are partial global tensors
        self.wait()
        return numbers

    def convolve(self, images, filters):
        return nn.functional.conv2d(images, filters)

    def wait(self):
        flow._oneflow_internal.eager.Sync()

    def versions(self):
        found = {"python": process.python_version(), "oneflow": flow.__version__}
        if self.flags.device == "cuda":
            found["cuda"] = str(sysconfig.get_cuda_version())
        return f"oneflow {flow.__version__}", found

    def peak_memory(self):
        """OneFlow records no peak; a graph takes its memory when compiled, and keeps it."""
        if self.flags.device == "cuda":
            return int(flow._oneflow_internal.GetCUDAMemoryUsed() * 2**20)
        return process.peak_memory()

    def step(self, work):
        return DataParallel(self, work)

    def leave(self):
        flow.comm.barrier()
        if self.place.rank == 0 and self.place.world_size > 1:
            # Else it may be gone before the others have its server's answer, and they abort.
            time.sleep(1)


class DataParallel(backend.Step):
    """The whole model on each rank: all of it, its batches too, in one graph."""

    def __init__(self, made, work):
        flags, recipe, self._made = work.flags, work.recipe, made
        rank, _, world_size = made.place
        if flags.input == "synthetic":
            batches = FixedBatch(recipe, flags, rank)
        else:
            batches = work.batches(flags, rank, world_size)
        self.feed = self
        self._model, self._batches, self._precision = work.model(flags), batches, work.precision
        named = work.named(self._model.parameters())
        with flow.no_grad():
            for name, weight in named.items():
                value = work.start(name)
                last = CHANNELS_LAST and value.ndim == 4  # filters, [out, in, height, width]
                weight.copy_(flow.tensor(value.transpose(0, 2, 3, 1) if last else value))
        self._model.to_global(flow.placement.all(flags.device), flow.sbp.broadcast)
        # DOUBT: whether to_global keeps the identity of parameters, else named again here.
        self.named = work.named(self._model.parameters())
        optimizer = make_optimizer(work, self.named)
        counts = getattr(recipe, "counts", None)
        self._iterate = Training(work.precision, self._model, batches, optimizer, counts)
        self._counts, self._judge = {}, None

    def sizes(self):
        return {name: weight.numel() for name, weight in self.named.items()}

    def weights(self):
        for name, weight in self.named.items():
            yield name, weight.to_local().numpy()  # this rank's own copy

    def without_dropout(self):
        # Its reader begins at the first batch, and so does the one of training. The graph stays to
        # the end: OneFlow aborts if a rank gives up a graph while another still sends to it.
        self._model.eval()
        self._judge = Losses(self._precision, self._model, self._batches)
        loss = self._judge().to_local().numpy().mean().item()
        self._model.train()
        return loss

    def __call__(self, wanted):
        losses, counted = self._iterate()
        # Added up on the device, which nothing waits for.
        self._counts = {unit: self._counts.get(unit, 0) + one for unit, one in counted.items()}
        return losses

    def fetch(self, losses):
        self._made.wait()  # a graph's outputs can be fetched before the graph has finished
        return losses.to_local().numpy().mean().item()

    # As a Feed: the graph takes its batches itself.
    def take(self):
        if self._judge is None:
            self._judge = Reading(self._batches)
        self._judge()
        self._made.wait()

    def waited(self):
        return None if self._made.flags.input != "synthetic" else 0.0

    def counted(self, batches):
        everywhere = flow.sbp.broadcast
        return {
            unit: count.to_global(sbp=everywhere).to_local().item()
            for unit, count in self._counts.items()
        }


class Reading(nn.Graph):
    """Each call takes one batch."""

    def __init__(self, batches):
        super().__init__()
        self.batches = batches

    def build(self):
        return self.batches()


class Losses(Reading):
    """Each call takes one batch and returns the model's losses, split over the ranks."""

    def __init__(self, precision, model, batches):
        super().__init__(batches)
        self.model = model
        self.config.enable_amp(precision.compute == "float16")
        self.config.allow_fuse_add_to_output(True)

    def build(self):
        return self.model(*self.batches())


class Training(Losses):
    """Each call trains on one batch.

    It returns the model's losses and, by their units, what the recipe's `counts`, if it has them,
    counts in the batch of all ranks.
    """

    def __init__(self, precision, model, batches, optimizer, counts):
        super().__init__(precision, model, batches)
        self.counts = counts
        self.add_optimizer(optimizer)
        self.config.allow_fuse_model_update_ops(True)
        if precision.loss_scale == DYNAMIC:
            self.set_grad_scaler(flow.amp.GradScaler())
        elif precision.loss_scale is not None:
            self.set_grad_scaler(flow.amp.StaticGradScaler(precision.loss_scale))

    def build(self):
        batch = self.batches()
        losses = self.model(*batch)
        losses.mean().backward()
        counted = self.counts(batch) if self.counts else {}
        return losses, {unit: count.to(flow.int64) for unit, count in counted.items()}


def make_optimizer(work, weights):
    """The recipe's optimizer for a model whose weights are global."""
    asked, groups = work.optimizer, work.groups(weights)
    if isinstance(asked, AdamW):
        return AdamWOfOneGroup(groups, work.rate, asked)
    return flow.optim.SGD(groups, lr=work.rate, momentum=asked.momentum)


class AdamWOfOneGroup(flow.optim.AdamW):
    """AdamW that clips all gradients by one norm, where OneFlow clips each group by its own.

    So all weights are in one group, of which not all decay.

    Args:
        groups: dictionaries of "params" and "weight_decay", which is 0.0 or the one that is asked.
        rate: the learning rate.
        asked: an AdamW of trainers.contract.recipe.
    """

    def __init__(self, groups, rate, asked):
        decaying = (group["params"] for group in groups if group["weight_decay"])
        self._decaying = {id(one) for weights in decaying for one in weights}
        whole = {"params": [one for group in groups for one in group["params"]]}
        if asked.clip is not None:
            whole.update(clip_grad_max_norm=asked.clip, clip_grad_norm_type=2.0)
        betas = asked.beta1, asked.beta2
        super().__init__(
            [whole], lr=rate, betas=betas, eps=asked.epsilon, weight_decay=asked.weight_decay
        )

    def _generate_conf_for_graph(self, train_conf, vars_conf):
        made = super()._generate_conf_for_graph(train_conf, vars_conf)
        names = (one.name for weight, one in vars_conf.items() if id(weight) in self._decaying)
        made[0].weight_decay_conf.includes.pattern.extend(f"^{re.escape(name)}$" for name in names)
        return made
