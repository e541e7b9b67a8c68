"""Train BERT-base with PyTorch: records read by numpy, torch's own optimizer."""

from trainers.frameworks.torch.engine import run
from trainers.frameworks.torch.sentences import sentence_batches
from trainers.frameworks.torch.unpadded import bert_of
from trainers.recipes import bert

if __name__ == "__main__":
    run(bert, bert_of, sentence_batches)
