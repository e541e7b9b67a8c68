"""Train ResNet-50 as NVIDIA's MXNet container does: DALI, and settings for GPUs."""

from trainers.frameworks.mxnet.dali import dali_images
from trainers.frameworks.mxnet.engine import run
from trainers.frameworks.mxnet.nvidia import SETTINGS
from trainers.frameworks.mxnet.resnet50 import ResNet50
from trainers.recipes import resnet50

if __name__ == "__main__":
    run(resnet50, ResNet50, dali_images, settings=SETTINGS)
