"""The optimizers that recipes ask for, and what MXNet and Horovod lack of them."""

import horovod.mxnet as hvd
import mxnet as mx

from trainers.contract import recipe

AGGREGATED = {"cpu": 1, "gpu": 45}
"""Weights that one kernel updates: on GPUs as many as in MXNet's own LAMB. On a CPU ten take three
times as long, for a kernel goes through all at once."""


class AdamW(mx.optimizer.Optimizer):
    """MXNet has the kernel, but no optimizer that calls it and none that corrects its bias."""

    def __init__(self, asked, device, **settings):
        super().__init__(wd=asked.weight_decay, **settings)
        self.aggregate_num = AGGREGATED[device.device_type]
        self._asked = asked

    def create_state(self, index, weight):
        return mx.nd.zeros_like(weight), mx.nd.zeros_like(weight)

    def update(self, index, weight, grad, state):  # all of them lists
        self._update_count(index)
        beta1, beta2 = self._asked.beta1, self._asked.beta2
        step = self._index_update_count[index[0]]  # and that of the others
        of_squares = (1 - beta2**step) ** 0.5
        how = {"beta1": beta1, "beta2": beta2, "epsilon": self._asked.epsilon * of_squares}
        # A weight loses etas * (lrs * m / (sqrt(v) + epsilon) + wds * weight).
        how["lrs"] = [of_squares / (1 - beta1**step)] * len(index)
        how.update(wds=self._get_wds(index), etas=self._get_lrs(index), out=weight)
        mx.nd.contrib.multi_adamw_update(weight, grad, *zip(*state), self.rescale_grad, **how)


class Trainer(hvd.DistributedTrainer):
    """Updates weights by gradients that Horovod averages over the ranks, in so many `groups`.

    They are clipped by the norm of all, for which the optimizer's `rescale_grad` must be an array.
    """

    def __init__(self, parameters, optimizer, *, clip, groups):
        super().__init__(parameters, optimizer, num_groups=groups)
        self._clip = clip

    def _allreduce_grads(self):
        super()._allreduce_grads()
        if self._clip is not None:
            gradients = [one.list_grad()[0] for one in self._params if one.grad_req != "null"]
            # By this the optimizer multiplies gradients: it makes averages of sums over ranks.
            factor = self.optimizer.rescale_grad
            self.optimizer.rescale_grad = factor * share_within(self._clip / factor, gradients)


def share_within(most, gradients):
    """What to multiply gradients by, so that their norm is within a limit: [1], at most 1."""
    # Nothing waits for it. Of infinite gradients it is next to nothing, and not zero, by which
    # MXNet would make no update: then no loss would show them.
    share = mx.nd.minimum(most / (norm(gradients) + 1e-6), 1.0)
    return mx.nd.where(share > 0, share, 1e-30 * mx.nd.ones_like(share))


def norm(arrays):
    """The norm of all arrays together, [1]."""
    if arrays[0].context.device_type == "gpu":
        squares = mx.nd.multi_sum_sq(*arrays, num_arrays=len(arrays))
    else:
        # There multi_sum_sq adds up square by square: of millions it loses some percent.
        flat = [array.reshape(-1) for array in arrays]
        squares = mx.nd.concat(*(mx.nd.dot(one, one) for one in flat), dim=0)
    return mx.nd.sqrt(mx.nd.sum(squares))


def make_optimizer(asked, device, **settings):
    if isinstance(asked, recipe.AdamW):
        return AdamW(asked, device, **settings)
    return mx.optimizer.SGD(momentum=asked.momentum, wd=asked.weight_decay, **settings)
