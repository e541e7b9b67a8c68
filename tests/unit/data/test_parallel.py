"""Work in parts; test_interruptions.py has those of which a process is killed."""

import time

import pytest
from reperf.data import parallel
from reperf.data.parallel import run_parts
from reperf.errors import ReperfError


@pytest.mark.parametrize("workers", [1, 2, 5, 50])
def test_results_stand_in_the_order_of_the_parts_and_every_item_is_counted(workers, capsys):
    def square(part, tick):
        tick()
        tick(2)
        return part * part

    assert run_parts(square, 7, workers, "squares", 3 * 7) == [0, 1, 4, 9, 16, 25, 36]
    assert capsys.readouterr().err.startswith("squares: 21 in ")


def test_a_log_gets_sparse_lines_with_the_time_left(capsys, monkeypatch):
    now = 0.0
    monkeypatch.setattr(parallel.time, "monotonic", lambda: now)
    show = parallel.progress_lines("images to tfrecord", 100)
    for second in range(51):
        now = float(second)
        show(2 * second)
    show(100)
    assert capsys.readouterr().err.splitlines() == [
        "images to tfrecord: 20 of 100, about 40 s left",
        "images to tfrecord: 40 of 100, about 30 s left",
        "images to tfrecord: 60 of 100, about 20 s left",
        "images to tfrecord: 80 of 100, about 10 s left",
        "images to tfrecord: 100 in 50.0 s",
    ]


def test_an_error_brings_its_traceback():
    def stumble(_, __):
        return {}["missing"]

    with pytest.raises(KeyError) as caught:
        run_parts(stumble, 1, 1, "", 1)
    assert "in stumble" in str(caught.value.__cause__)


def test_when_one_part_fails_the_others_stop():
    def fail_or_go_on(part, tick):
        if part == 0:
            raise ReperfError(f"part {part} is bad")
        while True:
            tick()
            time.sleep(0.001)

    with pytest.raises(ReperfError, match=r"^part 0 is bad$"):
        run_parts(fail_or_go_on, 2, 2, "", 1)
