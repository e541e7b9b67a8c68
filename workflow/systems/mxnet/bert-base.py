"""Train BERT-base with MXNet: Gluon, Horovod, and records read by numpy."""

from trainers.frameworks.mxnet.bert import Bert
from trainers.frameworks.mxnet.engine import run
from trainers.frameworks.mxnet.sentences import sentence_batches
from trainers.recipes import bert

if __name__ == "__main__":
    run(bert, Bert, sentence_batches)
