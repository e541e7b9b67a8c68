"""Train BERT-base as NVIDIA's PyTorch container does: a fused optimizer."""

from trainers.frameworks.torch.apex import fused_optimizer
from trainers.frameworks.torch.bert import Bert
from trainers.frameworks.torch.engine import run
from trainers.frameworks.torch.sentences import sentence_batches
from trainers.recipes import bert

if __name__ == "__main__":
    run(bert, Bert, sentence_batches, make_optimizer=fused_optimizer)
