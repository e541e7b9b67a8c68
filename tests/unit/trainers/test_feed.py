"""How long training waits for batches, and what it has trained on, as the backends' feed says."""

import itertools
import math
import threading
from argparse import Namespace
from collections.abc import Callable, Iterator
from types import SimpleNamespace

import pytest
from trainers.contract import backend
from trainers.contract.backend import Counts
from trainers.recipes import llama, resnet50

from tests.helpers.shapes import TINY_LLAMA
from tests.unit.trainers.test_sharing import grid

WORDS = SimpleNamespace(counts=lambda batch: {"words": len(batch), "letters": sum(map(len, batch))})
BATCHES = (["a"], ["to", "be"], ["or", "not", "to"])


class Clock:
    """A clock that tests set."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch):
        self.now = 100.0
        monkeypatch.setattr(backend.time, "perf_counter", lambda: self.now)

    def passes(self, *seconds: float) -> Iterator[tuple]:
        """Batches that take so long to come."""
        for one in seconds:
            self.now += one
            yield ()


class Host(backend.Backend):
    """numpy on this process alone."""

    def put(self, batch):
        return batch


def feed_of(
    batches: Iterator[tuple] = (),
    mark: Callable | None = None,
    recipe: object = resnet50,
    how: dict | None = None,
    **changes: object,
) -> backend.Feed:
    usual = {"input": "tfrecord", "shape": {"image_size": 32}, "batch_size": 2, "seed": 1}
    flags = Namespace(**usual | changes)
    work = SimpleNamespace(flags=flags, recipe=recipe, batches=lambda *asked: batches)
    host = Host(flags, backend.Place(0, 0, 1))
    if mark is not None:
        host.mark = mark
    return backend.Feed(host, work, **how or {})


def test_waits_for_batches_add_up(monkeypatch):
    clock = Clock(monkeypatch)
    feed, waits = feed_of(clock.passes(0.5, 0.25, 2.0)), []
    for _ in range(3):
        next(feed)
        clock.now += 10  # the iteration
        waits.append(feed.waited())
    assert waits == [0.5, 0.75, 2.75]


@pytest.mark.parametrize(
    ("finished", "waited"),
    [(90.0, 4.0), (101.0, 3.0), (104.0, 0.0), (math.inf, 0.0), (-math.inf, 4.0)],
)
def test_a_device_that_still_computes_waits_for_nothing(monkeypatch, finished, waited):
    feed = feed_of(Clock(monkeypatch).passes(4.0), mark=lambda: lambda: finished)
    next(feed)
    assert feed.waited() == waited


def test_the_batch_of_synthetic_input_is_always_there_and_a_first_one_comes_again():
    feed = feed_of(input="synthetic")
    assert next(feed) is next(feed)
    assert feed.waited() == 0.0
    feed = feed_of(iter([("first",), ("second",)]))
    assert [feed.peek(), next(feed), next(feed)] == [("first",), ("first",), ("second",)]


def test_batches_that_were_read_ahead_count_only_once_they_are_trained_on():
    """Another thread may read them."""
    counts = Counts(WORDS)
    batches = counts.of(itertools.cycle(BATCHES))
    reader = threading.Thread(target=lambda: list(itertools.islice(batches, 30_000)))
    reader.start()
    seen = [counts.after(iteration).get("words", 0) for iteration in range(1, 1000)]
    reader.join()
    assert seen == sorted(seen)
    for _ in range(2):
        assert counts.after(1001) == {"words": 2001, "letters": 4001}
    assert counts.after(30_000) == {"words": 60_000, "letters": 120_000}


def test_a_batch_that_always_comes_counts_in_each_iteration_if_the_recipe_counts_anything():
    for recipe, counted in (WORDS, {"words": 20, "letters": 40}), (resnet50, {}):
        counts = Counts(recipe)
        counts.always(["to", "be"])
        assert counts.after(10) == counted
    counts = Counts(resnet50)
    assert [*counts.of(iter(BATCHES))] == [*BATCHES]
    assert counts.after(3) == {}


def test_tokens_that_a_layers_ranks_read_together_are_counted_once():
    asked = {"input": "synthetic", "shape": TINY_LLAMA, "batch_size": 4, "own_time": False}
    ranks = [grid(rank, 2, tensor=2) for rank in range(2)]
    feeds = [
        feed_of(recipe=llama, how={"share": one.share, "counts": one.counts}, **asked)
        for one in ranks
    ]
    tokens = 3 * 4 * TINY_LLAMA["context"]
    assert [feed.counted(3)["tokens"] for feed in feeds] == [tokens, 0]
