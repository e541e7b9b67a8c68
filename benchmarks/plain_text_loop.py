"""The plain loop of convert_text.py: text, vocabulary and output as arguments.

Prints how many sequences it made, in how many seconds and CPU seconds, and by what they were
written. It needs no package; in a Python that has TensorFlow, it writes TFRecords, as
google-research/bert does.
"""

import json
import sys
import time
from pathlib import Path
from random import Random

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.unit.data.plain_bert import Tokenizer, read_documents, sequences_of

try:
    import tensorflow
except ImportError:
    tensorflow = None


def main(text: str, vocabulary: str, output: str) -> None:
    begin, begin_cpu = time.perf_counter(), time.process_time()
    with Path(vocabulary).open(encoding="utf-8") as lines:
        tokens = [line.strip() for line in lines]
    with Path(text).open(encoding="utf-8") as lines:
        documents = read_documents(lines, Tokenizer(tokens))
    made = sequences_of(documents, tokens, 128, 20, Random(1))
    write = write_json if tensorflow is None else write_examples
    write(made, output)
    writer = "JSON" if tensorflow is None else "TFRecordWriter"
    seconds, cpu_seconds = time.perf_counter() - begin, time.process_time() - begin_cpu
    print(len(made), seconds, cpu_seconds, writer)


def write_json(made: list, output: str) -> None:
    with Path(output).open("w", encoding="utf-8") as stream:
        for sequence in made:
            stream.write(json.dumps(sequence) + "\n")


def write_examples(made: list, output: str) -> None:
    train = tensorflow.train

    def feature(values):
        if isinstance(values[0], float):
            return train.Feature(float_list=train.FloatList(value=values))
        return train.Feature(int64_list=train.Int64List(value=values))

    with tensorflow.io.TFRecordWriter(output) as writer:
        for sequence in made:
            features = {key: feature(values) for key, values in sequence.items()}
            example = train.Example(features=train.Features(feature=features))
            writer.write(example.SerializeToString())


if __name__ == "__main__":
    main(*sys.argv[1:])
