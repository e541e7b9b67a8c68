"""Train VGG16 with PaddlePaddle: JPEGs decoded by threads on the CPU, or by NVIDIA DALI."""

from trainers.frameworks.paddle.before import prepared
from trainers.recipes import vgg16

if __name__ == "__main__":
    with prepared(vgg16) as (flags, log):
        from trainers.frameworks.paddle.engine import train
        from trainers.frameworks.paddle.inputs import images
        from trainers.frameworks.paddle.vgg16 import VGG16

        train(vgg16, flags, log, make_model=VGG16, make_batches=images)
