"""Every framework reads the same text, each rank its own, and counts its tokens."""

from hashlib import sha256
from itertools import accumulate, islice
from pathlib import Path

import numpy as np
import pytest
from reperf.systems import load_systems
from trainers.inputs.pairs import Pairs
from trainers.inputs.sentences import Sentences
from trainers.inputs.tokens import Tokens

from tests.helpers.shapes import TINY_BERT, TINY_GPT2, TINY_TRANSFORMER
from tests.helpers.small_text import SHAPE, text_settings
from tests.systems.cases import case, some
from tests.systems.trainer import losses, recipe_of, step_log, trained_by

BATCH, BATCHES = 32, 80
"""More than the text has: reading goes on at its beginning."""
SENTENCES = text_settings(Path()).model_dump(exclude={"text"})

# Workload -> what reads it, of which kind of data, and how that is converted.
READ = {
    "gpt2-124m": (Tokens, "tokens", {"bpe": None}),
    "transformer": (Pairs, "pairs", {"joint_bpe": None, "longest": 72}),
    "bert-base": (Sentences, "text", SENTENCES),
}
# Workload -> what a run asks for; a proof is without dropout.
ASKED = {
    "gpt2-124m": {"shape": TINY_GPT2, "batch_size": 4},
    "transformer": {
        "shape": TINY_TRANSFORMER | {"longest": 72},
        "batch_size": 128,
        "more_flags": ("--proof",),
    },
    "bert-base": {"shape": TINY_BERT | SHAPE, "batch_size": BATCH},
}
CASES = [
    (name, workload)
    for name, system in load_systems().items()
    for workload in trained_by(system)
    if workload in READ
]
IN_CI = {
    ("pytorch", "gpt2-124m"),
    ("pytorch", "transformer"),
    # Of those whose graphs read for themselves.
    ("oneflow", "bert-base"),
    ("tensorflow2", "bert-base"),
}


def cases(*workloads, but=""):
    wanted = [one for one in CASES if one[1] in workloads and one[0] != but]
    return pytest.mark.parametrize(
        ("system", "workload"), [case(*one, weekly=one not in IN_CI) for one in wanted]
    )


@pytest.fixture
def trained(converted, trainer_of, once):
    """The log of a system's run on the embedded set, trained once."""

    def log_of(system, workload):
        (form, *_), (_, kind, settings) = (
            load_systems()[system].workloads[workload].reads,
            READ[workload],
        )
        read = {"input": form, "data": str(converted(kind, form, **settings)), "iterations": 4}
        asked = {"workload": workload, **ASKED[workload], **read}
        return once(
            f"{system} on text of {workload}", lambda: trainer_of(system).train_well(**asked)
        )[1]

    return log_of


@cases(*READ)
def test_ranks_train_on_text_of_their_own_whose_tokens_are_counted(
    system, workload, trained, converted
):
    steps = step_log(log := trained(system, workload))[1]
    reader, kind, settings = READ[workload]
    folder = converted(kind, "tfrecord" if kind == "text" else "ids", **settings)
    shape, batch_size, count = (
        *map(ASKED[workload].get, ("shape", "batch_size")),
        recipe_of(workload).counts,
    )
    ranks = [islice(reader(folder, shape, batch_size, rank, 2), 4) for rank in (0, 1)]
    read = list(
        accumulate(
            sum(int(count(one)["tokens"]) for one in both) for both in zip(*ranks, strict=True)
        )
    )
    assert [step["tokens"] for step in steps] == read
    assert len(set(read)) == 4
    assert [step["samples"] for step in steps] == [2 * batch_size * one for one in range(1, 5)]
    assert abs(losses(log, 0)[0] - losses(log, 1)[0]) > 1e-3


@cases("gpt2-124m", "transformer", but="pytorch")
def test_the_losses_on_text_are_those_of_pytorch(system, workload, trained):
    for rank in (0, 1):
        ours, pytorchs = (losses(trained(one, workload), rank) for one in (system, "pytorch"))
        assert ours == pytest.approx(pytorchs, abs=1e-5)


@cases("bert-base")
def test_training_begins_with_the_first_batch_whose_loss_was_said_before(system, workload, trained):
    said, steps = step_log(trained(system, workload))
    assert steps[0]["loss"] == pytest.approx(said["loss_without_dropout"], abs=0.2)


TENSORFLOW = """
from argparse import Namespace
import tensorflow as tf
from trainers.frameworks.tensorflow.sentences import tfrecord_sentences
tf.compat.v1.enable_eager_execution()
flags = Namespace(data=FOLDER, shape=SHAPE, batch_size=BATCH, loader_threads=1)
batches = ([array.numpy() for array in batch] for batch in tfrecord_sentences(flags, 0, 1))
"""
ONEFLOW = """
from argparse import Namespace
from oneflow import nn
from trainers.frameworks.oneflow.inputs import RecordSentences
class Reading(nn.Graph):
    def __init__(self):
        super().__init__()
        asked = {"input": "ofrecord", "data": FOLDER, "shape": SHAPE, "batch_size": BATCH}
        self.batches = RecordSentences(Namespace(device="cpu", **asked), 0, 1)
    def build(self):
        return self.batches()
reading = Reading()
batches = iter(lambda: [one.to_local().numpy() for one in reading()], None)
"""
PADDLE = """
from argparse import Namespace
from trainers.frameworks.paddle.inputs import on_device
from trainers.inputs.sentences import sentence_batches
batches = sentence_batches(Namespace(data=FOLDER, shape=SHAPE, batch_size=BATCH), 0, 1, None)
batches = on_device(batches)
"""
SAID = """
import json
from hashlib import sha256
import numpy as np
found = []
for _ in range(BATCHES):
    batch = [np.asarray(array, np.float64) for array in next(batches)]
    found.append(sha256(b"".join(array.tobytes() for array in batch)).hexdigest())
print(json.dumps(found))
"""
# The other systems read by trainers.inputs.sentences, which is ours.
READERS = {
    "tensorflow2": ("tfrecord", TENSORFLOW),
    "ngc-tensorflow1": ("tfrecord", TENSORFLOW),
    "oneflow": ("ofrecord", ONEFLOW),
    "paddlepaddle": ("tfrecord", PADDLE),
}


@some(*READERS)
def test_the_batches_are_those_that_our_reader_finds(system, converted, trainer_of):
    form, reader = READERS[system]
    folder = str(converted("text", form, **SENTENCES))
    named = {"FOLDER": folder, "SHAPE": SHAPE, "BATCH": BATCH, "BATCHES": BATCHES}
    names = "".join(f"{name} = {value!r}\n" for name, value in named.items())
    found = trainer_of(system).answer(names + reader + SAID)
    batches = Sentences(converted("text", "tfrecord", **SENTENCES), SHAPE, BATCH, 0, 1)
    assert found == [
        sha256(b"".join(np.asarray(array, np.float64).tobytes() for array in batch)).hexdigest()
        for batch in islice(batches, BATCHES)
    ]
    assert len(set(found)) > 60
