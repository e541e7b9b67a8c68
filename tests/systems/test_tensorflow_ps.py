"""TensorFlow on parameter servers trains what plain SGD does, and says what has died."""

import json
import signal
import socket
from argparse import Namespace
from itertools import islice

import numpy as np
import pytest
from reperf.data.tokens.embedded import make as make_text
from reperf.data.words.convert import convert
from reperf.data.words.manifest import WordSettings
from trainers.inputs.words import word_batches

from tests.systems.plain_ctr import plain_losses as plain_ctr
from tests.systems.plain_word2vec import plain_losses as plain_word2vec
from tests.systems.trainer import losses, step_log

WORDS = {"vocabulary": 1400, "width": 32, "window": 5, "negatives": 5}
SLOTS = {"rows": 1000, "embedding": 4, "hidden": 32}
CTR = {"workload": "ctr", "shape": SLOTS, "batch_size": 50, "iterations": 20}
V1 = {"variant": "v1", "together": True}
HERE = socket.gethostname()

pytestmark = [pytest.mark.every_system, pytest.mark.xdist_group("tensorflow2")]


@pytest.fixture(scope="module")
def trainer(trainer_of):
    return trainer_of("tensorflow-ps")


@pytest.fixture(scope="module")
def word2vec(tmp_path_factory) -> dict[str, object]:
    """What a run on the embedded text's words is asked for."""
    folder = tmp_path_factory.mktemp("words")
    make_text(folder / "text.txt")
    usual = {"least_count": 5, "thinning": 1e-3, "parts": 2, "seed": 1}
    convert(
        WordSettings(words=str(folder / "text.txt"), **usual), folder / "words", "words", workers=1
    )
    read = {"input": "words", "data": str(folder / "words")}
    return {"workload": "word2vec", "shape": WORDS, "batch_size": 500, "iterations": 100} | read


def own_losses(log: str, rank: int) -> list[float]:
    """The losses that a trainer printed that keeps its own time."""
    events = [
        json.loads(line.partition(" ")[2]) for line in log.splitlines() if "tracked_st" in line
    ]
    return [one["value"]["loss"] for one in events if one["metadata"]["rank"] == rank]


def batches_of_words(asked, rank=0, ranks=1):
    flags = Namespace(**asked)
    return list(islice(word_batches(flags, rank, ranks, None), asked["iterations"]))


def test_sessions_of_one_trainer_are_plain_sgd_and_of_two_learn(trainer, word2vec):
    """To six digits, tables being cut over two servers; of two trainers the first losses are."""
    record, log = trainer.train(**word2vec, **V1, topology="1n1g", servers={"per_node": 2})
    assert record.status == "ok", log[-5000:]
    wanted = plain_word2vec(WORDS, batches_of_words(word2vec))
    assert own_losses(log, 0) == pytest.approx(wanted, abs=1e-4)
    assert wanted[0] > np.mean(wanted[-10:]) + 0.5

    record, log = trainer.train(**word2vec, **V1, servers={"per_node": 1})
    assert record.status == "ok", log[-5000:]
    for rank in (0, 1):
        said = own_losses(log, rank)
        wanted = plain_word2vec(WORDS, batches_of_words(word2vec, rank, 2)[:1])
        assert said[0] == pytest.approx(wanted[0], abs=1e-4)
        assert np.mean(said[-10:]) < said[0] - 0.5


def test_a_coordinator_of_one_worker_is_plain_sgd_and_of_two_learns(trainer):
    """A proof, whose table does not start from zero; the first batch of two is trained on alone."""
    wanted = plain_ctr(SLOTS, 50, 1, 20)[:, 0]
    asked = CTR | {"servers": {"per_node": 2}, "more_flags": ("--proof",)}
    record, log = trainer.train(**asked, topology="1n1g")
    assert record.status == "ok", log[-5000:]
    assert losses(log, 0) == pytest.approx(wanted, abs=1e-4)
    assert wanted[-1] < wanted[0] - 0.05
    assert record.settings["disable_thread_spinning"] == "1"

    record, log = trainer.train(**asked)
    assert record.status == "ok", log[-5000:]
    _, steps = step_log(log)
    assert steps[0]["loss"] == pytest.approx(wanted[0], abs=1e-4)
    assert [one["samples"] for one in steps] == [100 * count for count in range(1, 21)]
    assert steps[-1]["loss"] < steps[0]["loss"] - 0.05


@pytest.mark.parametrize(
    ("changes", "victim", "reason"),
    [
        (V1, "server 0", f"failed: server 0 on {HERE} ended with SIGKILL, before the trainers"),
        ({}, "server 0", f"failed: server 0 on {HERE} ended with SIGKILL, before the trainers"),
        (V1, "rank 1", f"failed: rank 1 on {HERE} was ended by SIGKILL; "),
    ],
)
def test_a_process_that_is_killed_ends_the_run_and_is_named(trainer, changes, victim, reason):
    """Soon: its peers would train for hours."""
    with trainer.disturbed(signal.SIGKILL, 1, 10, victim):
        record, log = trainer.train(
            **CTR | changes | {"iterations": 1_000_000, "servers": {"per_node": 1}}, time_limit=200
        )
    assert f"{record.status}: {record.reason}".startswith(reason), log[-5000:]
