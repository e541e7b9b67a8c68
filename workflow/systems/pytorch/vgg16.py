"""Train VGG16 with PyTorch: JPEGs decoded by threads on the CPU, torch's own optimizer."""

from trainers.frameworks.torch.engine import run
from trainers.frameworks.torch.jpegs import decoded_jpegs
from trainers.frameworks.torch.vgg16 import VGG16
from trainers.recipes import vgg16

if __name__ == "__main__":
    run(vgg16, VGG16, decoded_jpegs)
