"""Work in parts; test_interruptions.py has those of which a process is killed."""

import re
import time

import pytest
from reperf.data import conversion
from reperf.data.conversion import run_parts
from reperf.errors import ReperfError


@pytest.mark.parametrize("workers", [1, 2, 5, 50])
def test_results_stand_in_the_order_of_the_parts(workers, capsys):
    squares = run_parts(lambda part: part * part, 7, workers, "squares")
    assert squares == [0, 1, 4, 9, 16, 25, 36]
    assert capsys.readouterr().err.startswith("squares: 7 parts in ")


def test_a_log_gets_lines_with_the_time_left(capsys, monkeypatch):
    monkeypatch.setattr(conversion, "SECONDS_BETWEEN_LINES", 0.1)
    run_parts(lambda _: time.sleep(0.15), 3, 1, "naps")
    first, *_, last = capsys.readouterr().err.splitlines()
    assert re.fullmatch(r"naps: 1 of 3 parts, about \d+ s left", first)
    assert re.fullmatch(r"naps: 3 parts in \d+\.\d s", last)


def test_an_error_brings_its_traceback():
    def stumble(_):
        return {}["missing"]

    with pytest.raises(KeyError) as caught:
        run_parts(stumble, 1, 1, "")
    assert "in stumble" in str(caught.value.__cause__)


def test_when_one_part_fails_the_others_stop():
    def fail_or_go_on(part):
        if part == 0:
            raise ReperfError(f"part {part} is bad")
        while True:
            time.sleep(0.001)

    with pytest.raises(ReperfError, match=r"^part 0 is bad$"):
        run_parts(fail_or_go_on, 2, 2, "")
