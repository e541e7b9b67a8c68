"""What PipeDream's ranks should come to, in one process that knows nothing of ranks.

A stage of R replicas takes batch m through the weights that it had after m // R - depth of its
updates, or its first ones, and averages the gradients of R batches. `delayed_alone.py FILE ..`
leaves all last weights in FILE.npz, and the losses of rank 0.
"""

import sys

import numpy as np
import torch
from kept_ranks import HIDDEN
from steps import parsed
from torch.func import functional_call
from trainers.contract import driver, recipe
from trainers.contract.delayed import depth, rounds
from trainers.contract.stages import shares
from trainers.contract.weights import synthetic_batch
from trainers.frameworks.torch.backend import torch_optimizer
from trainers.recipes import plain


class Stage:
    """One stage: all versions of its weights, and the gradients for the next one."""

    def __init__(self, work, number):
        self.replicas = work.flags.pipeline[number]
        self.depth = depth(work.flags.pipeline, number)
        cuts = recipe.cuts(work.recipe, work.flags.pipeline)
        self.network = work.model.stage(work.flags, cuts, number)
        self.names = shares(work.shapes, cuts)[number]
        self.weights = list(self.network.parameters())
        for name, weight in zip(self.names, self.weights, strict=True):
            weight.data.copy_(torch.from_numpy(work.start(name)))
        self.network.to(memory_format=torch.channels_last)
        named = dict(zip(self.names, self.weights, strict=True))
        rate = work.rate * self.replicas / work.flags.pipeline[0]
        self.optimizer = torch_optimizer(work.groups(named), rate, work.optimizer)
        self.versions, self.gradients = [], []
        self.keep()

    def keep(self):
        self.versions.append([one.detach().clone() for one in self.weights])

    def forward(self, batch, inputs):
        version = self.versions[max(0, batch // self.replicas - self.depth)]
        self.used = [one.clone().requires_grad_() for one in version]
        names = (name for name, _ in self.network.named_parameters())
        self.outputs = functional_call(
            self.network, dict(zip(names, self.used, strict=True)), (inputs,)
        )
        return self.outputs

    def backward(self, outputs, given, inputs):
        gradients = torch.autograd.grad(outputs, [*self.used, *inputs], given)
        self.gradients.append([one / self.replicas for one in gradients[: len(self.used)]])
        if len(self.gradients) == self.replicas:
            for weight, *of_each in zip(self.weights, *self.gradients, strict=True):
                weight.grad = sum(of_each[1:], of_each[0])
            self.optimizer.step()
            self.keep()
            self.gradients = []
        return gradients[-1]


def train(argv):
    """The stages after training as flags say, and each batch's loss."""
    module, flags = parsed(argv)
    first = flags.pipeline[0]
    backend = driver.backend_of(flags)
    work = driver.Work(module, flags, flags.batch_size * first, backend.computes)
    stages = [Stage(work, number) for number in range(len(flags.pipeline))]
    read = [
        map(torch.from_numpy, synthetic_batch(module, flags, reader)) for reader in range(first)
    ]
    batches, losses = [list(one) for one in read], []
    for batch in range(rounds(flags.pipeline, flags.iterations) * first):
        outputs, labels = batches[batch % first]
        came = []
        for stage in stages:
            inputs = outputs.detach().requires_grad_() if came else outputs
            came.append([inputs] if came else [])
            outputs = stage.forward(batch, inputs)
        outputs, given = work.model.loss(outputs, labels), None
        losses.append(outputs.item())
        for stage, inputs in zip(reversed(stages), reversed(came), strict=True):
            if given is not None:
                outputs = stage.outputs
            given = stage.backward(outputs, given, inputs)
    return stages, losses[::first][: flags.iterations]


if __name__ == "__main__":
    plain.HIDDEN = HIDDEN
    stages, losses = train(sys.argv[2:])
    ends = {
        name: weight.detach().numpy()
        for stage in stages
        for name, weight in zip(stage.names, stage.weights, strict=True)
    }
    np.savez(f"{sys.argv[1]}.npz", losses=losses, **ends)
