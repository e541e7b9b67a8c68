"""Train ResNet-50 with MXNet: Gluon, Horovod, and MXNet's own reader of its own records."""

from trainers.frameworks.mxnet.engine import run
from trainers.frameworks.mxnet.records import record_images
from trainers.frameworks.mxnet.resnet50 import ResNet50
from trainers.recipes import resnet50

if __name__ == "__main__":
    run(resnet50, ResNet50, record_images)
