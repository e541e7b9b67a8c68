"""Train ResNet-50 as NVIDIA's PyTorch container does: DALI, a fused optimizer."""

from trainers.frameworks.torch.apex import fused_optimizer
from trainers.frameworks.torch.dali import dali_images
from trainers.frameworks.torch.engine import run
from trainers.frameworks.torch.resnet50 import ResNet50
from trainers.recipes import resnet50

if __name__ == "__main__":
    run(resnet50, ResNet50, dali_images, make_optimizer=fused_optimizer)
