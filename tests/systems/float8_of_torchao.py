"""Compare our float8 layers with torchao's, which torchao emulates on a CPU.

Prints JSON: for each recipe and largest input, how far outputs and gradients are off.
"""

import dataclasses
import json

import torch
from torch import nn
from torchao.float8 import Float8LinearConfig, convert_to_float8_training
from trainers.frameworks.torch import float8

GREATEST = (1.0, 3.0625, 6.125, 7.875)
"""The largest inputs. Rounded twice, the scales of all but the first are off by their last bit. A
sixteenth of bfloat16's numbers is then halfway between two float8 numbers, and rounds otherwise."""
ROWS, INPUTS, OUTPUTS = 64, 128, 96


def main():
    found = {}
    for name in ("tensorwise", "rowwise"):
        config = dataclasses.replace(Float8LinearConfig.from_recipe_name(name), emulate=True)
        for greatest in GREATEST:
            torch.manual_seed(1)
            x = torch.randn(ROWS, INPUTS).clamp(-greatest, greatest).bfloat16()
            x[:, 0] = greatest
            gradient, weight = torch.randn(ROWS, OUTPUTS).bfloat16(), torch.randn(OUTPUTS, INPUTS)
            results = []
            for whose in ("ours", "torchao's"):
                layer = nn.Linear(INPUTS, OUTPUTS, bias=False)
                layer.weight.data.copy_(weight)
                if whose == "ours":
                    layer = float8.Linear(layer, name == "rowwise")
                else:
                    layer = convert_to_float8_training(nn.Sequential(layer), config=config)[0]
                given = x.clone().requires_grad_()
                y = layer(given)
                y.backward(gradient)
                results.append((y.detach(), given.grad, layer.weight.grad))
            found[f"{name} {greatest}"] = [
                ((own.double() - theirs.double()).norm() / theirs.double().norm()).item()
                for own, theirs in zip(*results, strict=True)
            ]
    print(json.dumps(found))


if __name__ == "__main__":
    main()
