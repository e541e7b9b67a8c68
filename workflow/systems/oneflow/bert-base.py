"""Train BERT-base with OneFlow: OFRecord parts, read by OneFlow itself."""

from trainers.frameworks.oneflow.before import prepared
from trainers.recipes import bert

if __name__ == "__main__":
    with prepared(bert) as (flags, log):
        from trainers.frameworks.oneflow.bert import Bert
        from trainers.frameworks.oneflow.engine import train
        from trainers.frameworks.oneflow.inputs import RecordSentences

        train(bert, flags, log, make_model=Bert, make_batches=RecordSentences)
