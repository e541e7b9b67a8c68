"""Train ResNet-50 with OneFlow: OFRecord parts, read and decoded by OneFlow itself."""

from trainers.frameworks.oneflow.before import prepared
from trainers.recipes import resnet50

if __name__ == "__main__":
    with prepared(resnet50) as (flags, log):
        from trainers.frameworks.oneflow.engine import train
        from trainers.frameworks.oneflow.inputs import RecordImages
        from trainers.frameworks.oneflow.resnet50 import ResNet50

        train(resnet50, flags, log, make_model=ResNet50, make_batches=RecordImages)
