"""Work in parts; test_interruptions.py has those of which a process is killed."""

import time

import pytest
from reperf.data.parallel import run_parts
from reperf.errors import ReperfError


def unwatched(_: int) -> None:
    pass


@pytest.mark.parametrize("workers", [1, 2, 5, 50])
def test_results_stand_in_the_order_of_the_parts_and_the_watcher_hears_of_every_item(workers):
    def square(part, tick):
        tick()
        tick(2)
        return part * part

    heard = []
    assert run_parts(square, 7, workers, heard.append) == [0, 1, 4, 9, 16, 25, 36]
    assert heard == sorted(heard)
    assert heard[-1] == 3 * 7


def test_an_error_brings_its_traceback():
    def stumble(_, __):
        return {}["missing"]

    with pytest.raises(KeyError) as caught:
        run_parts(stumble, 1, 1, unwatched)
    assert "in stumble" in str(caught.value.__cause__)


def test_when_one_part_fails_the_others_stop():
    def fail_or_go_on(part, tick):
        if part == 0:
            raise ReperfError(f"part {part} is bad")
        while True:
            tick()
            time.sleep(0.001)

    with pytest.raises(ReperfError, match=r"^part 0 is bad$"):
        run_parts(fail_or_go_on, 2, 2, unwatched)
