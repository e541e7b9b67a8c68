"""What a rank has trained on, whoever is ahead of it."""

import itertools
import threading
from types import SimpleNamespace

from trainers.contract.counts import Counts
from trainers.recipes import resnet50

WORDS = SimpleNamespace(counts=lambda batch: {"words": len(batch), "letters": sum(map(len, batch))})
BATCHES = (["a"], ["to", "be"], ["or", "not", "to"])


def test_batches_that_were_read_ahead_count_only_once_they_are_trained_on():
    counts = Counts(WORDS)
    batches = counts.of(itertools.cycle(BATCHES))
    assert list(itertools.islice(batches, 5)) == [*BATCHES, *BATCHES[:2]]
    assert counts.after(1) == {"words": 1, "letters": 1}
    assert counts.after(3) == {"words": 6, "letters": 12}
    assert counts.after(3) == {"words": 6, "letters": 12}
    next(batches)
    assert counts.after(5) == {"words": 9, "letters": 17}


def test_another_thread_may_read():
    counts = Counts(WORDS)
    batches = counts.of(itertools.cycle(BATCHES))
    reader = threading.Thread(target=lambda: list(itertools.islice(batches, 30_000)))
    reader.start()
    seen = [counts.after(iteration).get("words", 0) for iteration in range(1, 1000)]
    reader.join()
    assert seen == sorted(seen)
    assert counts.after(30_000) == {"words": 60_000, "letters": 120_000}


def test_one_batch_again_and_again_is_counted_once_for_each_iteration():
    counts = Counts(WORDS)
    counts.always(["to", "be"])
    assert counts.after(10) == {"words": 20, "letters": 40}


def test_a_recipe_that_counts_nothing_else_has_nothing_done():
    counts, batches = Counts(resnet50), iter(BATCHES)
    assert counts.of(batches) is batches
    counts.always(["a"])
    assert counts.after(7) == {}
