"""Every framework's own reader finds the same batches in converted text as ours."""

from hashlib import sha256
from itertools import accumulate, islice

import numpy as np
import pytest
from reperf.data.text.convert_text import convert
from reperf.data.text.embedded_text import make as make_text
from trainers.inputs.sentences import NAMES, Sentences
from trainers.recipes import bert

from tests.helpers.shapes import TINY_BERT
from tests.helpers.small_text import SHAPE, text_settings
from tests.systems.trainer import step_log

BATCH, BATCHES = 32, 80
"""More than the text has: reading goes on at its beginning."""

OURS = """
from trainers.inputs.sentences import Sentences
batches = iter(Sentences(FOLDER, SHAPE, BATCH, 0, 1))
"""
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
for _ in range({batches}):
    batch = [np.asarray(array, np.float64) for array in next(batches)]
    found.append(sha256(b"".join(array.tobytes() for array in batch)).hexdigest())
print(json.dumps(found))
"""
READERS = {
    "pytorch": ("tfrecord", OURS),
    "jax": ("tfrecord", OURS),
    "mxnet": ("tfrecord", OURS),
    "tensorflow2": ("tfrecord", TENSORFLOW),
    "ngc-tensorflow1": ("tfrecord", TENSORFLOW),
    "oneflow": ("ofrecord", ONEFLOW),
    "paddlepaddle": ("tfrecord", PADDLE),
}


@pytest.fixture(scope="module")
def converted(tmp_path_factory):
    """The embedded text in a format."""
    folder = tmp_path_factory.mktemp("text")
    make_text(folder / "text.txt")
    settings = text_settings(folder / "text.txt")

    def of(form):
        if not (folder / form).exists():
            convert(settings, folder / form, form, workers=1)
        return folder / form

    return of


@pytest.mark.parametrize(
    "reader_of",
    [
        pytest.param(
            name,
            marks=[pytest.mark.xdist_group(name)]
            + [pytest.mark.every_system] * (name != "pytorch"),
        )
        for name in READERS
    ],
)
def test_the_batches_are_those_of_every_other_reader(reader_of, converted, trainer_of):
    form, reader = READERS[reader_of]
    folder = converted(form)
    named = {
        "FOLDER": str(folder),
        "PARTS": sorted(str(path) for path in folder.glob("part-?????")),
        "SHAPE": SHAPE,
        "BATCH": BATCH,
        "NAMES": NAMES,
    }
    names = "".join(f"{name} = {value!r}\n" for name, value in named.items())
    found = trainer_of(reader_of).answer(names + reader + SAID.format(batches=BATCHES))
    expected = [
        sha256(b"".join(np.asarray(array, np.float64).tobytes() for array in batch)).hexdigest()
        for batch in islice(Sentences(converted("tfrecord"), SHAPE, BATCH, 0, 1), BATCHES)
    ]
    assert found == expected
    assert len(set(found)) > 60


@pytest.mark.every_system
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.xdist_group(name))
        for name in ("tensorflow2", "ngc-tensorflow1")
    ],
)
def test_training_begins_with_the_first_batch_whose_loss_was_said_before(
    name, converted, trainer_of
):
    """Of graphs that read for themselves: their tokens come with the batches."""
    shape, folder = TINY_BERT | SHAPE, converted("tfrecord")
    record, log = trainer_of(name).train(
        workload="bert-base",
        topology="1n1g",
        shape=shape,
        input="tfrecord",
        data=str(folder),
        batch_size=BATCH,
    )
    assert record.status == "ok", log[-5000:]
    said, steps = step_log(log)
    batches = islice(Sentences(folder, shape, BATCH, 0, 1), len(steps))
    tokens = accumulate(bert.counts(batch)["tokens"] for batch in batches)
    assert [step["tokens"] for step in steps] == list(tokens)
    assert steps[0]["loss"] == pytest.approx(said["loss_without_dropout"], abs=0.1)
