"""The usual way to make TFRecords: one loop around TensorFlow's writer. Prints its seconds.

Arguments: a folder that holds train/<synset>/*.JPEG, and the file to write. It checks nothing and
is told the size of the images, so it does less than reperf's converter.
"""

import os

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import sys
import time
from pathlib import Path

import tensorflow as tf


def integer(number):
    return tf.train.Feature(int64_list=tf.train.Int64List(value=[number]))


def text(content):
    return tf.train.Feature(bytes_list=tf.train.BytesList(value=[content]))


def example(path, label):
    features = {
        "image/channels": integer(3),
        "image/class/label": integer(label),
        "image/class/synset": text(path.parent.name.encode()),
        "image/colorspace": text(b"RGB"),
        "image/encoded": text(path.read_bytes()),
        "image/filename": text(path.name.encode()),
        "image/format": text(b"JPEG"),
        "image/height": integer(375),
        "image/width": integer(500),
    }
    return tf.train.Example(features=tf.train.Features(feature=features))


images, output = Path(sys.argv[1]), sys.argv[2]
begin = time.perf_counter()
with tf.io.TFRecordWriter(output) as writer:
    for label, synset in enumerate(sorted((images / "train").iterdir()), start=1):
        for path in sorted(synset.iterdir()):
            writer.write(example(path, label).SerializeToString())
print(time.perf_counter() - begin)
