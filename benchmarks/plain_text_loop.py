"""The plain loop of convert_text.py: text, vocabulary and output as arguments.

It follows google-research/bert's create_pretraining_data.py, one pair after the other.

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

from tests.unit.data.plain_bert import Tokenizer

try:
    import tensorflow
except ImportError:
    tensorflow = None

SHORT = 0.1  # of documents


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


def read_documents(lines, tokenizer):
    """Lists of tokenized sentences; an empty line ends a document."""
    documents = [[]]
    for line in lines:
        if not line.strip():
            documents.append([])
        elif tokens := tokenizer.tokens(line.strip()):
            documents[-1].append(tokens)
    return [document for document in documents if document]


def sequences_of(documents, vocabulary, length, predictions, random):
    """All sequences of one pass: dictionaries of the lists that a record holds."""
    ids = {token: number for number, token in enumerate(vocabulary)}
    made = []
    for number in range(len(documents)):
        for first, second, random_next in pairs_of(documents, number, length - 3, random):
            tokens = ["[CLS]", *first, "[SEP]", *second, "[SEP]"]
            segments = [0] * (len(first) + 2) + [1] * (len(second) + 1)
            positions, answers = mask(tokens, vocabulary, predictions, random)
            padding, missing = [0] * (length - len(tokens)), predictions - len(positions)
            made.append(
                {
                    "input_ids": [ids[token] for token in tokens] + padding,
                    "input_mask": [1] * len(tokens) + padding,
                    "segment_ids": segments + padding,
                    "masked_lm_positions": positions + [0] * missing,
                    "masked_lm_ids": [ids[token] for token in answers] + [0] * missing,
                    "masked_lm_weights": [1.0] * len(positions) + [0.0] * missing,
                    "next_sentence_labels": [int(random_next)],
                }
            )
    random.shuffle(made)
    return made


def pairs_of(documents, number, most, random):
    """The pairs of halves of one document, and whether the second is of another document."""
    document = documents[number]
    target = random.randint(2, most) if random.random() < SHORT else most
    pairs, chunk, size, at = [], [], 0, 0
    while at < len(document):
        chunk.append(document[at])
        size += len(document[at])
        at += 1
        if at < len(document) and size < target:
            continue
        split = random.randint(1, len(chunk) - 1) if len(chunk) > 1 else 1
        first = [token for sentence in chunk[:split] for token in sentence]
        second = [token for sentence in chunk[split:] for token in sentence]
        random_next = len(chunk) == 1 or random.random() < 0.5
        if random_next:
            second = elsewhere(documents, number, target - len(first), random)
            at -= len(chunk) - split
        shorten(first, second, most, random)
        pairs.append((first, second, random_next))
        chunk, size = [], 0
    return pairs


def elsewhere(documents, own, wanted, random):
    for _ in range(10):
        other = random.randint(0, len(documents) - 1)
        if other != own:
            break
    document, tokens = documents[other], []
    for sentence in document[random.randint(0, len(document) - 1) :]:
        tokens += sentence
        if len(tokens) >= wanted:
            break
    return tokens


def shorten(first, second, most, random):
    while len(first) + len(second) > most:
        longer = first if len(first) > len(second) else second
        longer.pop(0 if random.random() < 0.5 else -1)


def mask(tokens, vocabulary, predictions, random):
    """Mask some tokens in place; returns their positions in order, and what they were."""
    inside = [at for at, token in enumerate(tokens) if token not in ("[CLS]", "[SEP]")]
    random.shuffle(inside)
    count = min(predictions, max(1, round(len(tokens) * 0.15)))
    positions = sorted(inside[:count])
    answers = [tokens[at] for at in positions]
    for at in positions:
        if random.random() < 0.8:
            tokens[at] = "[MASK]"
        elif random.random() < 0.5:
            tokens[at] = vocabulary[random.randint(0, len(vocabulary) - 1)]
    return positions, answers


if __name__ == "__main__":
    main(*sys.argv[1:])
