"""Parameter servers of Paddle: what they train, held against plain SGD in numpy.

Proofs start from a table that is not zero, so that a block of it at a wrong place shows.
"""

import json
import signal
import socket
from argparse import Namespace

import numpy as np
import pytest
from trainers.contract.weights import synthetic_batch
from trainers.recipes import word2vec

from tests.systems.plain_ctr import plain_losses as plain_ctr
from tests.systems.plain_word2vec import plain_losses as plain_word2vec
from tests.systems.trainer import losses, step_log

SHAPE = {"rows": 20_000, "embedding": 10, "hidden": 32}  # cut over two servers: 10,000 rows each
WORDS = {"vocabulary": 2000, "width": 32, "window": 5, "negatives": 5}
ASKED = {
    "workload": "ctr",
    "shape": SHAPE,
    "batch_size": 64,
    "iterations": 20,
    "servers": {"per_node": 2},
    "more_flags": ("--proof",),
}
ALONE = {"topology": "1n1g", "together": True}

pytestmark = pytest.mark.every_system


@pytest.fixture(scope="module")
def trainer(trainer_of):
    return trainer_of("paddle-fleet")


def plain(workload: str, shape: dict[str, int], ranks: int) -> list[float]:
    """The ranks' mean losses of plain SGD on the batches of all of them."""
    if workload == "ctr":
        return plain_ctr(shape, 64, ranks, 20).mean(axis=1).tolist()
    flags = Namespace(shape=shape, batch_size=64, seed=1)
    batches = [synthetic_batch(word2vec, flags, rank) for rank in range(ranks)]
    together = [np.concatenate(parts) for parts in zip(*batches, strict=True)]
    return plain_word2vec(shape, 20 * [together], proof=True)


@pytest.mark.parametrize(
    ("workload", "shape", "trainers"),
    [("ctr", SHAPE, 1), ("ctr", SHAPE, 2), ("word2vec", WORDS, 2)],
)
def test_in_step_trainers_train_as_plain_sgd_on_the_batches_of_all_does(
    trainer, workload, shape, trainers
):
    changes = {"workload": workload, "shape": shape, "topology": f"1n{trainers}g"}
    record, log = trainer.train(**ASKED | changes)
    assert (record.status, record.reason) == ("ok", ""), log[-5000:]
    wanted = plain(workload, shape, trainers)
    own = np.mean([losses(log, rank) for rank in range(trainers)], axis=0)
    assert own == pytest.approx(wanted, abs=1e-4)
    assert wanted[0] - wanted[-1] > 0.02  # so far does it learn
    assert record.settings["runtime_split_send_recv"] == "0"
    summed = record.settings.get("pserver_sum_before_update")
    assert summed == (None if trainers == 1 else "0")
    facts, steps = step_log(log)
    assert [step["samples"] for step in steps] == [64 * trainers * count for count in range(1, 21)]
    assert len(facts["weight_digests"]) == trainers
    assert len(set(facts["weight_digests"])) == 1


@pytest.mark.parametrize(
    ("workload", "shape", "variant"),
    [("ctr", SHAPE, "async"), ("ctr", SHAPE, "geo"), ("word2vec", WORDS, "geo")],
)
def test_one_trainer_in_its_own_time_trains_nearly_as_plain_sgd_does(
    trainer, workload, shape, variant
):
    """GEO that pushes each step trains exactly so."""
    more, near = ((), 0.005) if variant == "async" else (("--push-every=1",), 1e-4)
    changes = {"workload": workload, "shape": shape, "variant": variant}
    changes["more_flags"] = (*ASKED["more_flags"], *more)
    record, log = trainer.train(**ASKED | ALONE | changes)
    assert record.status == "ok", log[-5000:]
    wanted = plain(workload, shape, 1)
    own = losses(log, 0)
    assert own[0] == pytest.approx(wanted[0], abs=1e-4)
    assert own[-1] == pytest.approx(wanted[-1], abs=near)
    pulls_apart = record.settings.get("communicator_independent_recv_thread")
    assert pulls_apart == ("0" if variant == "async" else None)


def test_trainers_in_their_own_time_log_each_and_learn_on_clicks(trainer, clicks):
    """Each pushes what it has changed every five iterations, and reads lines of its own."""
    changes = {"variant": "geo", "together": True, "input": "rows", "data": str(clicks)}
    changes |= {"iterations": 60, "print_every": 5, "more_flags": ("--push-every=5",)}
    record, log = trainer.train(**ASKED | changes)
    assert record.status == "ok", log[-5000:]
    assert record.not_compared.startswith("the trainers' last weights: ")
    lines = [line for line in log.splitlines() if "tracked_stats" in line]
    events = [json.loads(line.partition(" ")[2]) for line in lines]
    for rank in (0, 1):
        own = [one["value"] for one in events if one["metadata"]["rank"] == rank]
        # Who comes first to the end trains on, and logs it.
        assert [one["samples"] for one in own][:12] == [64 * count for count in range(5, 61, 5)]
        assert sum(one["loss"] for one in own[-4:]) < sum(one["loss"] for one in own[:4])
    assert log.count('"key": "run_stop"') == 2


def test_a_run_that_would_push_nothing_is_refused(trainer):
    record, _ = trainer.train(**ASKED | ALONE | {"variant": "geo", "iterations": 20})
    assert record.reason.endswith(
        "--push-every is 100; allowed: with --together, 1 to --iterations, 20"
    )


def test_a_trainer_that_dies_ends_the_other_which_waits_for_it_in_silence(trainer):
    with trainer.disturbed(signal.SIGKILL, rank=1, iteration=20):
        record, log = trainer.train(**ASKED | {"iterations": 100_000, "print_every": 20})
    assert record.status == "failed", log[-5000:]
    assert record.reason.startswith(f"rank 1 on {socket.gethostname()} was ended by SIGKILL; ")
