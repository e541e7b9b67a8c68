"""Every framework reads the same text, each rank its own, and counts its tokens."""

import json
import signal
from hashlib import sha256
from itertools import accumulate, islice

import numpy as np
import pytest
from trainers.inputs.pairs import Pairs
from trainers.inputs.sentences import Sentences
from trainers.inputs.tokens import Tokens

from tests.helpers.shapes import TINY_BERT, TINY_GPT2, TINY_TRANSFORMER
from tests.helpers.small_text import KEYS, SHAPE
from tests.systems.cases import case, each_workload
from tests.systems.trainer import losses, recipe_of, step_log

BATCH, BATCHES = 32, 80
"""More than the text has: reading goes on at its beginning."""

# Workload -> what reads it, of which kind of data, and how that is converted.
READ = {
    "gpt2-124m": (Tokens, "tokens", {"bpe": None}),
    "transformer": (Pairs, "pairs", {"joint_bpe": None, "longest": 72}),
    "bert-base": (Sentences, "text", KEYS),
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


def of_text(*workloads, but=()):
    """A test of all systems; CI runs it for GPT-2 in PyTorch only."""
    return each_workload(
        fits=lambda workload: workload in workloads,
        but=but,
        weekly=lambda *of: of != ("pytorch", "gpt2-124m"),
    )


@pytest.fixture
def trained(converted, trainer_of, once):
    """The log of a system's run on the embedded set, trained once."""

    def log_of(system, workload):
        trainer, (_, kind, settings) = trainer_of(system), READ[workload]
        form = trainer.system.workloads[workload].reads[0]
        data = converted(kind, form, **settings)
        asked = ASKED[workload] | {"input": form, "data": str(data), "iterations": 4}
        _, log = once(
            f"{system} on text of {workload}",
            lambda: trainer.train_well(workload=workload, **asked),
        )
        return log

    return log_of


@of_text(*READ)
def test_ranks_train_on_text_of_their_own_whose_tokens_are_counted(
    system, workload, trained, converted
):
    log = trained(system, workload)
    reader, kind, settings = READ[workload]
    folder = converted(kind, "tfrecord" if kind == "text" else "ids", **settings)
    shape, batch_size = ASKED[workload]["shape"], ASKED[workload]["batch_size"]
    count = recipe_of(workload).counts
    ranks = [islice(reader(folder, shape, batch_size, rank, 2), 4) for rank in (0, 1)]
    both = zip(*ranks, strict=True)
    read = list(accumulate(sum(int(count(one)["tokens"]) for one in batches) for batches in both))
    steps = step_log(log)[1]
    assert [step["tokens"] for step in steps] == read
    assert len(set(read)) == 4
    assert [step["samples"] for step in steps] == [2 * batch_size * one for one in range(1, 5)]
    assert abs(losses(log, 0)[0] - losses(log, 1)[0]) > 1e-3


@of_text("gpt2-124m", "transformer", but=("pytorch",))
def test_the_losses_on_text_are_those_of_pytorch(system, workload, trained):
    for rank in (0, 1):
        ours, pytorchs = (losses(trained(one, workload), rank) for one in (system, "pytorch"))
        assert ours == pytest.approx(pytorchs, abs=1e-5)


@of_text("bert-base")
def test_training_begins_with_the_first_batch_whose_loss_was_said_before(system, workload, trained):
    said, steps = step_log(trained(system, workload))
    assert steps[0]["loss"] == pytest.approx(said["loss_without_dropout"], abs=0.2)


TENSORFLOW = """
from argparse import Namespace
import tensorflow as tf
from trainers.frameworks.tensorflow.text import tfrecord_sentences
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


@pytest.mark.parametrize("system", [case(one, weekly=one != "oneflow") for one in READERS])
def test_the_batches_are_those_that_our_reader_finds(system, converted, trainer_of):
    form, reader = READERS[system]
    folder = str(converted("text", form, **KEYS))
    named = {"FOLDER": folder, "SHAPE": SHAPE, "BATCH": BATCH, "BATCHES": BATCHES}
    names = "".join(f"{name} = {value!r}\n" for name, value in named.items())
    # A thread of OneFlow's own crashes in one of fifteen such programs, between two batches.
    answers = (trainer_of(system).python("-c", names + reader + SAID) for _ in range(3))
    answer = next(one for one in answers if one.returncode != -signal.SIGSEGV)
    assert answer.returncode == 0, answer.stdout
    found = json.loads(answer.stdout.splitlines()[-1])
    batches = Sentences(converted("text", "tfrecord", **KEYS), SHAPE, BATCH, 0, 1)
    assert found == [
        sha256(b"".join(np.asarray(array, np.float64).tobytes() for array in batch)).hexdigest()
        for batch in islice(batches, BATCHES)
    ]
    assert len(set(found)) > 60
