"""Trainers that keep their own time: where they meet, what they log, and how they are measured."""

import io
import itertools
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from reperf.config import Window
from reperf.measuring.measure import Measurement, Method, measure_log
from trainers.contract.backend import Place
from trainers.contract.meeting import Meeting, _connected
from trainers.contract.ports import claimed_ports

from tests.helpers.step_logs import planned_log
from tests.unit.trainers.test_steplog import events, make_log

MARK = ":::MLLOG "


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    """Threads, in which ranks wait."""
    with ThreadPoolExecutor(4) as pool:
        yield pool


@pytest.fixture
def port() -> Iterator[int]:
    """Where the ranks meet."""
    (port,) = claims = claimed_ports(1)
    with claims[port]:
        yield port


@pytest.fixture
def meet(pool: ThreadPoolExecutor, port: int):
    """Start ranks' coming to the meeting of so many."""
    return lambda size, *ranks: [
        pool.submit(Meeting, Place(rank, rank, size), f"127.0.0.1:{port}") for rank in ranks
    ]


@pytest.fixture
def both(meet) -> tuple[Meeting, Meeting]:
    """Two ranks that have met."""
    second, first = (rank.result(240) for rank in meet(2, 1, 0))
    return first, second


def test_all_ranks_hear_what_all_have_said_once_the_last_has(meet, pool):
    ranks = [rank.result(240) for rank in meet(3, 2, 1, 0)][::-1]  # rank 0 comes last
    for round_ in range(2):
        for rank in (2, 0):
            ranks[rank].enter(f"{round_} of {rank}")
            assert ranks[rank].entered() is None
        late = pool.submit(ranks[1].gather, f"{round_} of 1")
        heard = [None, None]
        while None in heard:  # as who trains on asks
            heard = [heard[0] or ranks[0].entered(), heard[1] or ranks[2].entered()]
        assert heard == [late.result(240)] * 2
        assert late.result() == [f"{round_} of {rank}" for rank in range(3)]


def test_values_longer_than_what_comes_at_once_come_whole(both, pool):
    said = [pool.submit(one.gather, [rank] * 300_000) for rank, one in enumerate(both)]
    assert said[0].result(240) == said[1].result(240) == [[0] * 300_000, [1] * 300_000]


def test_what_comes_in_one_piece_with_a_ranks_number_is_heard(meet, port):
    """Rank 0 may look late: a rank that has come does not wait for it before it says something."""
    (first,) = meet(2, 0)
    second = _connected(("127.0.0.1", port))
    second.sendall(b'1\n"second"\n')
    ranks = first.result(20)
    ranks.enter("first")
    assert ranks.entered() == ["first", "second"]


def test_a_rank_that_has_left_after_its_last_word_has_been_heard(both):
    first, second = both
    second.enter("second")
    assert first.gather("first") == ["first", "second"]
    first._lines[1].connection.close()
    second._listen(None)
    assert second.entered() == ["first", "second"]


def test_who_is_no_rank_is_shown_out_and_a_rank_that_goes_is_named(meet, port):
    (first,) = meet(2, 0)
    for said in (b"GET / HTTP/1.1\r\n\r\n", b"7\n", b'"x"\n', b""):
        with _connected(("127.0.0.1", port)) as stranger:
            stranger.sendall(said)
    (other,) = meet(2, 1)
    other.result(240)._lines[0].connection.close()
    with pytest.raises(ConnectionError, match="rank 1 has left the others"):
        first.result(240).gather(None)


def test_each_trainer_logs_its_own_steps_and_its_own_end(capfd):
    log = make_log(rank=1, more="--own-time")
    assert log.global_batch == 4
    log.step(5, 2.0, None)
    # Replicas that have not seen each other's last update differ.
    log.finished([["all", "a"], ["all", "b"]], [1, 2])
    said, _ = capfd.readouterr()
    assert {event["metadata"]["rank"] for event in events(said)} == {1}
    values = {event["key"]: event["value"] for event in events(said)}
    assert values["tracked_stats"]["samples"] == 20
    assert values["configuration"]["own_time"]
    assert "run_stop" in values
    assert said.endswith("rank 1: done\n")


def lines_of(
    rank: int, rate: float, *, later: float = 0.0, own_time: str = "own_time", until: int = 120
) -> list[str]:
    """What one of two trainers logs that trains on until an iteration.

    Its clock runs `later` than another's by so many seconds.
    """
    said = {own_time: True, "batch_size": 8, "iterations": 120} if own_time else {}
    lines = planned_log(batch=8, rate=rate, iterations=until, every=2)
    found = [json.loads(one[len(MARK) :]) for one in lines if one.startswith(MARK)]
    for event in found:
        event["metadata"]["rank"] = rank
        event["time_ms"] += int(1000 * later)
        if event["key"] == "configuration":
            event["value"] |= said
    return [MARK + json.dumps(event) for event in found]


def alone(lines: list[str]) -> list[str]:
    """A trainer's lines as those of a run that has no other."""
    size = '"world_size", "value": '
    return [one.replace('"rank": 1', '"rank": 0').replace(f"{size}2", f"{size}1") for one in lines]


def measured(*ranks: list[str], ends: tuple[int, int] | None = None) -> Measurement:
    """What a log gives into which ranks have written in turn, each as far as it had come."""
    mixed = [line for lines in itertools.zip_longest(*ranks) for line in lines if line]
    stream = io.BytesIO("".join(line + "\n" for line in mixed).encode())
    method = Method(window=Window(warmup=20, measured=100), ends=ends)
    [(found, *_)] = measure_log("log", stream, method)
    return found


FAST, SLOW = lines_of(0, 100.0), lines_of(1, 97.0)


def test_trainers_that_keep_their_own_time_are_measured_each_and_summed():
    one, other, both = measured(alone(FAST)), measured(alone(SLOW)), measured(FAST, SLOW)
    assert (both.status, both.method) == ("ok", "together")
    assert (both.world_size, both.global_batch) == (2, 8)
    assert both.throughput == one.throughput + other.throughput
    assert one.throughput != other.throughput
    assert both.samples == one.samples + other.samples == 1600
    assert both.samples / both.seconds == pytest.approx(both.throughput)
    assert both.counted == {"samples": 1600}
    # Whoever comes first, rank 0 is first.
    assert measured(SLOW, FAST) == both
    # As logs said it once.
    before = [lines_of(*of, own_time="together") for of in ((0, 100.0), (1, 97.0))]
    assert measured(*before).throughput == both.throughput


def test_a_fast_trainer_is_measured_for_as_long_as_the_last_one_takes():
    """It has made the window's iterations long before, and its further ones count."""
    fast, slow = lines_of(0, 100.0, until=240), lines_of(1, 50.0)
    both = measured(fast, slow)
    assert (both.status, both.reason) == ("ok", "")
    one, other = measured(alone(fast), ends=(both.first, both.last)), measured(alone(slow))
    assert both.throughput == one.throughput + other.throughput
    assert both.samples == one.samples + other.samples
    # Both begin when the slow one has warmed up, at about iteration 40 of the fast one.
    assert (both.first, both.last) == (pytest.approx(40, abs=4), pytest.approx(240, abs=4))


@pytest.mark.parametrize(
    ("ranks", "reason"),
    [
        ([FAST, lines_of(1, 97.0, later=1.0)], "the 2 trainers' windows overlap by "),
        # The fast one has not trained on.
        ([FAST, lines_of(1, 50.0)], "% of the longest; allowed: 90% or more"),
        ([FAST], "there is no line of rank 1; the run has 2 ranks"),
        ([FAST, lines_of(2, 97.0)], "there is no line of rank 1; the run has 2 ranks"),
        ([FAST, SLOW, lines_of(2, 97.0)], "there is a line of rank 2; the run has 2 ranks"),
        ([FAST, SLOW[:-2]], "rank 1: too short: it ends at iteration 118, the window at 120"),
        ([FAST, SLOW[:-1]], "rank 1: the end of the run is not in the log: the log is cut, or"),
        (
            [lines_of(rank, 100.0, own_time="") for rank in (0, 1)],
            "ranks write lines of their own, and the log does not say `together`",
        ),
    ],
    ids=["clocks", "speeds", "no other", "no second", "a third", "short", "cut", "in step"],
)
def test_what_cannot_be_summed_is_refused_in_one_line(ranks, reason):
    found = measured(*ranks)
    assert (found.status, found.throughput) == ("refused", None)
    assert reason in found.reason
