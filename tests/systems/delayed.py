"""PipeDream at a narrow classifier, in the environment of PyTorch: its ranks, or all in one process.

`delayed.py ranks FILE ..` trains as the system's program does with the flags that follow, and
leaves the weights in FILE.0, FILE.1 and so on. `delayed.py alone FILE ..` follows the same schedule
in one process, by what it says alone: stage s takes batch m through the weights that it had
after m // R - depth of its updates.
"""

import sys

import numpy as np
from trainers.contract import driver, recipe
from trainers.contract.delayed import depth, rounds
from trainers.contract.stages import shares
from trainers.contract.weights import synthetic_batch
from trainers.recipes import plain

HIDDEN = 256


def alone(file, argv):
    import torch

    names, others = driver.parse_names(argv)
    module = driver.import_module(f"trainers.recipes.{names.recipe}")
    flags = driver.parse_flags(module, others)
    vars(flags).update(vars(names))
    pipeline = flags.pipeline
    backend = driver.made(flags)
    work = driver.Work(module, flags, flags.batch_size * pipeline[0], backend.mixed)
    cuts = recipe.cuts(module, pipeline)
    parts = shares(work.shapes, cuts)
    stages = [work.model.stage(flags, cuts, number) for number in range(len(pipeline))]
    first = [[torch.from_numpy(work.start(name)) for name in part] for part in parts]
    for stage, weights in zip(stages, first):
        for weight, start in zip(stage.parameters(), weights):
            weight.data.copy_(start)
        stage.to(memory_format=torch.channels_last)
    from trainers.frameworks.torch.backend import torch_optimizer

    versions = [[[one.detach().clone() for one in stage.parameters()]] for stage in stages]
    optimizers = [
        torch_optimizer(
            work.groups(dict(zip(part, stage.parameters()))),
            work.rate * replicas / pipeline[0],
            work.optimizer,
        )
        for part, stage, replicas in zip(parts, stages, pipeline)
    ]
    batches = [
        backend.put(list(map(torch.from_numpy, synthetic_batch(module, flags, reader))))
        for reader in range(pipeline[0])
    ]
    kept, losses = [[] for _ in stages], []
    for batch in range(rounds(pipeline, flags.iterations) * pipeline[0]):
        x, labels = batches[batch % pipeline[0]]
        chain = []
        for number, stage in enumerate(stages):
            then = max(0, batch // pipeline[number] - depth(pipeline, number))
            weights = [one.clone().requires_grad_() for one in versions[number][then]]
            x = x.detach().requires_grad_() if number else x
            named = dict(zip(dict(stage.named_parameters()), weights))
            y = torch.func.functional_call(stage, named, (x,))
            if number == len(stages) - 1:
                y = work.model.loss(y, labels)
                losses.append(y.item())
            chain.append((weights, x, y))
            x = y
        given = None
        for number, (weights, x, y) in reversed(list(enumerate(chain))):
            gradients = torch.autograd.grad(y, weights + ([x] if number else []), given)
            given = gradients[-1]
            kept[number].append([one / pipeline[number] for one in gradients[: len(weights)]])
        for number, stage in enumerate(stages):
            if len(kept[number]) == pipeline[number]:
                for weight, *gradients in zip(stage.parameters(), *kept[number]):
                    weight.grad = sum(gradients[1:], gradients[0])
                optimizers[number].step()
                versions[number].append([one.detach().clone() for one in stage.parameters()])
                kept[number] = []
    ends = dict(zip(work.shapes, (one.detach().numpy() for s in stages for one in s.parameters())))
    np.savez(file, losses=losses[:: pipeline[0]][: flags.iterations], **ends)


def ranks(file, argv):
    class Kept(driver.Watched):
        def digest(self):
            rank = driver.import_module("trainers.frameworks.torch.before").PLACE.rank
            np.savez(f"{file}.{rank}.npz", **dict(self._read()))
            return super().digest()

    driver.Watched = Kept
    driver.run(argv)


if __name__ == "__main__":
    plain.HIDDEN = HIDDEN
    {"alone": alone, "ranks": ranks}[sys.argv[1]](sys.argv[2], sys.argv[3:])
