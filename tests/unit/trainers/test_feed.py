"""How long training waits for batches, as the backends' feed measures it."""

import math
from argparse import Namespace
from collections.abc import Callable, Iterator
from types import SimpleNamespace

import pytest
from trainers.contract import backend
from trainers.recipes import resnet50


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


def feed_of(batches: Iterator[tuple], mark: Callable | None = None, **changes) -> backend.Feed:
    usual = {"input": "tfrecord", "shape": {"image_size": 32}, "batch_size": 2, "seed": 1}
    flags = Namespace(**usual | changes)
    work = SimpleNamespace(flags=flags, recipe=resnet50, batches=lambda *asked: batches)
    made = Host(flags, backend.Place(0, 0, 1))
    if mark is not None:
        made.mark = mark
    return backend.Feed(made, work)


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
    feed = feed_of(iter(()), input="synthetic")
    assert next(feed) is next(feed)
    assert feed.waited() == 0.0
    feed = feed_of(iter([("first",), ("second",)]))
    assert [feed.peek(), next(feed), next(feed)] == [("first",), ("first",), ("second",)]
