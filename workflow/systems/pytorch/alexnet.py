"""Train AlexNet with PyTorch: JPEGs decoded by threads on the CPU, torch's own optimizer."""

from trainers.frameworks.torch.alexnet import AlexNet
from trainers.frameworks.torch.engine import run
from trainers.frameworks.torch.jpegs import decoded_jpegs
from trainers.recipes import alexnet

if __name__ == "__main__":
    run(alexnet, AlexNet, decoded_jpegs)
