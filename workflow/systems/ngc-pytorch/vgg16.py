"""Train VGG16 as NVIDIA's PyTorch container does: DALI, a fused optimizer."""

from trainers.frameworks.torch.apex import fused_optimizer
from trainers.frameworks.torch.dali import dali_images
from trainers.frameworks.torch.engine import run
from trainers.frameworks.torch.vgg16 import VGG16
from trainers.recipes import vgg16

if __name__ == "__main__":
    run(vgg16, VGG16, dali_images, make_optimizer=fused_optimizer)
