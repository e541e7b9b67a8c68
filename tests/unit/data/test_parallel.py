import os
import signal
import time

import pytest
from reperf.data.parallel import run_parts
from reperf.errors import ReperfError


def unwatched(_: int) -> None:
    pass


@pytest.mark.parametrize("workers", [1, 2, 5, 50])
def test_results_stand_in_the_order_of_the_parts(workers):
    def square(part, tick):
        tick()
        return part * part

    assert run_parts(square, 7, workers, unwatched) == [0, 1, 4, 9, 16, 25, 36]


def test_the_watcher_hears_of_every_item_at_the_end():
    def three_items(_, tick):
        for _ in range(3):
            tick()

    heard = []
    run_parts(three_items, 4, 2, heard.append)
    assert heard == sorted(heard)
    assert heard[-1] == 12


def test_what_a_worker_raises_is_raised_here():
    def fail(part, _):
        raise ReperfError(f"part {part} is bad")

    with pytest.raises(ReperfError, match=r"^part 0 is bad$"):
        run_parts(fail, 1, 1, unwatched)


def test_an_unexpected_error_brings_its_traceback():
    def stumble(_, __):
        return {}["missing"]

    with pytest.raises(KeyError) as caught:
        run_parts(stumble, 1, 1, unwatched)
    assert "in stumble" in str(caught.value.__cause__)


def test_a_worker_that_is_killed_is_an_error_not_a_wait():
    def vanish(_, __):
        os.kill(os.getpid(), signal.SIGKILL)

    with pytest.raises(
        ReperfError, match=r"^a worker process was killed; memory may have run out$"
    ):
        run_parts(vanish, 2, 2, unwatched)


def test_when_one_part_fails_the_others_stop():
    def fail_or_go_on_for_ever(part, tick):
        if part == 0:
            raise ReperfError("bad")
        while True:
            tick()
            time.sleep(0.001)

    with pytest.raises(ReperfError, match="bad"):
        run_parts(fail_or_go_on_for_ever, 2, 2, unwatched)


def test_when_the_call_is_interrupted_the_workers_stop():
    def go_on_for_ever(_, tick):
        while True:
            tick()
            time.sleep(0.001)

    def interrupt(done):
        if done:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_parts(go_on_for_ever, 2, 2, interrupt)
