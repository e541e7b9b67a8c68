"""Train BERT-base with PaddlePaddle: records read by numpy, Paddle's own optimizer."""

from trainers.frameworks.paddle.before import prepared
from trainers.recipes import bert

if __name__ == "__main__":
    with prepared(bert) as (flags, log):
        from trainers.frameworks.paddle.bert import Bert
        from trainers.frameworks.paddle.engine import train
        from trainers.frameworks.paddle.sentences import sentence_batches

        train(bert, flags, log, make_model=Bert, make_batches=sentence_batches)
