"""Train AlexNet as NVIDIA's PyTorch container does: DALI, a fused optimizer."""

from trainers.frameworks.torch.alexnet import AlexNet
from trainers.frameworks.torch.apex import fused_optimizer
from trainers.frameworks.torch.dali import dali_images
from trainers.frameworks.torch.engine import run
from trainers.recipes import alexnet

if __name__ == "__main__":
    run(alexnet, AlexNet, dali_images, make_optimizer=fused_optimizer)
