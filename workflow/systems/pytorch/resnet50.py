"""Train ResNet-50 with PyTorch: JPEGs decoded by threads on the CPU, torch's own optimizer."""

from trainers.frameworks.torch.engine import run
from trainers.frameworks.torch.jpegs import decoded_jpegs
from trainers.frameworks.torch.resnet50 import ResNet50
from trainers.recipes import resnet50

if __name__ == "__main__":
    run(resnet50, ResNet50, decoded_jpegs)
