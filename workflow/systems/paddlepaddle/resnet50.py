"""Train ResNet-50 with PaddlePaddle: JPEGs decoded by threads on the CPU, or by NVIDIA DALI."""

from trainers.frameworks.paddle.before import prepared
from trainers.recipes import resnet50

if __name__ == "__main__":
    with prepared(resnet50) as (flags, log):
        from trainers.frameworks.paddle.engine import train
        from trainers.frameworks.paddle.inputs import images
        from trainers.frameworks.paddle.resnet50 import ResNet50

        train(resnet50, flags, log, make_model=ResNet50, make_batches=images)
