"""Train BERT-base as NVIDIA's TensorFlow 1 container does: Horovod, tf.data."""

from trainers.frameworks.tensorflow.bert import Bert
from trainers.frameworks.tensorflow.engine1 import run
from trainers.frameworks.tensorflow.sentences import tfrecord_sentences
from trainers.recipes import bert

if __name__ == "__main__":
    run(bert, Bert, tfrecord_sentences)
