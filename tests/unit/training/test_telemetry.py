"""What a meter's samples say about the window. The GPUs' counters are the tests' own here."""

import json
import threading
import time
from collections import namedtuple
from pathlib import Path

import pynvml
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reperf.logs.formats import mllog
from reperf.records.run_record import Power
from reperf.training import telemetry
from reperf.training.telemetry import Reading, keep, power_of_window, read, readings, used_gpus

Rates = namedtuple("Rates", "gpu")
Reported = tuple[float, float, float]
"""A sample of a meter: seconds, joules since some moment, percent."""


def power(ends: dict[int, float], **nodes: list[Reported]) -> Power | None:
    """The power from iteration 2 to 4, whose ends are given, by each node's samples."""
    meters = {
        node: [(seconds, Reading(*reported)) for seconds, *reported in samples]
        for node, samples in nodes.items()
    }
    return power_of_window(meters, (2, 4), ends)


def test_energy_of_start_up_and_of_the_end_does_not_count():
    # 10 W for the start, 300 W from 10 s to 20 s, 10 W afterwards.
    meter = [(0, 1000, 0), (10, 1100, 0), (10.001, 1100, 90), (20, 4100, 90), (30, 4200, 0)]
    found = power({2: 10.001, 4: 20.0}, node1=meter)
    assert found.energy_joules == pytest.approx(3000)
    assert found.mean_watts == pytest.approx(300, rel=1e-3)
    assert found.mean_utilisation_percent == pytest.approx(90)
    assert (found.nodes, found.first, found.last) == (("node1",), 2, 4)


@given(st.floats(1, 1e4), st.floats(0, 50), st.floats(0.01, 49), st.floats(0.1, 5))
def test_a_steady_power_is_found_whatever_the_window(watts, begin, length, every):
    times = [every * k for k in range(int(100 / every) + 2)]
    meter = [(time, 7e6 + watts * time, 50) for time in times]
    found = power({2: begin, 4: begin + length}, node1=meter)
    assert found.mean_watts == pytest.approx(watts, rel=1e-3, abs=1e-3)
    assert found.energy_joules == pytest.approx(watts * length, rel=1e-3, abs=1e-3)
    assert found.mean_utilisation_percent == pytest.approx(50)


SAMPLES = [(0, 0, 0), (3, 9, 0)]


@pytest.mark.parametrize(
    ("samples", "ends"),
    [
        ([], {2: 1.0, 4: 2.0}),
        (SAMPLES[:1], {2: 0.0, 4: 0.0}),
        (SAMPLES, {2: 1.0}),
        (SAMPLES, {4: 1.0}),
        (SAMPLES, {2: 1.0, 4: 5.0}),
        ([(2, 0, 0), (3, 9, 0)], {2: 1.0, 4: 3.0}),
        (SAMPLES, {2: 2.0, 4: 1.0}),
    ],
)
def test_without_samples_of_the_whole_window_there_is_no_power(samples, ends):
    assert power({2: 0.0, 4: 3.0}, node1=SAMPLES)
    assert power(ends, node1=samples) is None


def test_the_power_of_nodes_is_their_sum_and_those_without_it_are_not_named():
    one, two = [(0, 0, 80), (10, 3000, 80)], [(0, 50, 40), (10, 1050, 40)]
    found = power({2: 1.0, 4: 9.0}, one=one, two=two, lost=[(0, 0, 0), (3, 900, 0)], silent=[])
    assert found.nodes == ("one", "two")
    numbers = (found.mean_watts, found.energy_joules, found.mean_utilisation_percent)
    assert numbers == pytest.approx((400, 3200, 60))


@pytest.mark.parametrize(
    ("reasons", "held", "capped"),
    [
        # A power limit alone is usual.
        ([0, pynvml.nvmlClocksThrottleReasonSwPowerCap], 0.0, 0.5),
        ([pynvml.nvmlClocksThrottleReasonHwThermalSlowdown] * 2, 1.0, 0.0),
        (None, None, None),
    ],
    ids=["busy", "hot", "split"],
)
def test_what_holds_a_clock_down_is_a_share_of_the_gpus_and_of_the_window(
    monkeypatch, reasons, held, capped
):
    def said(value: object) -> object:
        if reasons is None:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)
        return value

    for name, answer in {
        "TotalEnergyConsumption": lambda _: 1000,
        "UtilizationRates": lambda _: Rates(90),
        "ClockInfo": lambda handle, _: said(1410 + 200 * handle),
        "CurrentClocksThrottleReasons": lambda handle: said(reasons and reasons[handle]),
    }.items():
        monkeypatch.setattr(pynvml, f"nvmlDeviceGet{name}", answer)
    monkeypatch.setattr(telemetry, "handle_of", int)
    reading = telemetry._read(("0", "1"))
    # As another node's is heard.
    [(_, heard)] = read([f"node {' '.join(map(str, reading))}".encode()])
    found = power_of_window({"node": [(0, reading), (9, heard)]}, (2, 4), {2: 1.0, 4: 8.0})
    assert (found.throttled, found.capped) == (held, capped)
    assert found.mean_mhz == (None if reasons is None else pytest.approx(1510))
    assert found.mean_utilisation_percent == pytest.approx(90)


def test_lines_of_other_nodes_are_readings_at_the_moment_when_they_arrive():
    found: dict[str, telemetry.Samples] = {}
    before = time.perf_counter()
    said = b"node2 10.5 40.0\nsrun: error: node3\nnode2\n\nnode2 20.5 60.0\n"
    keep(read(said.splitlines(keepends=True)), found)
    ((node, ((first, one), (last, two))),) = found.items()
    assert before <= first <= last <= time.perf_counter()
    assert (node, one[:2], two[:2]) == ("node2", (10.5, 40.0), (20.5, 60.0))


def test_a_gpu_that_stops_to_answer_ends_the_readings_and_not_the_run(monkeypatch):
    answers = iter([Reading(1, 1)])

    def read(used: tuple[str, ...]) -> Reading:
        for answer in answers:
            return answer
        raise pynvml.NVMLError(pynvml.NVML_ERROR_GPU_IS_LOST)

    monkeypatch.setattr(telemetry, "_read", read)
    stop = threading.Event()
    stop.set()
    assert list(readings(("0",), stop)) == [Reading(1, 1)]


def test_the_ends_of_the_window_are_those_that_the_trainer_printed(tmp_path: Path):
    steps = [{"iteration": k, "seconds": 100.0 + k, "samples": k} for k in range(1, 6)]
    odd = [{"iteration": "2", "seconds": 1}, {"iteration": 4, "seconds": "1"}, [], {}, None]
    lines = [json.dumps({"key": "tracked_stats", "value": value}) for value in [*steps, *odd]]
    (tmp_path / "log").write_text("".join(f":::MLLOG {line}\n" for line in lines))
    assert mllog.read_ends(tmp_path / "log", (2, 4)) == {2: 102.0, 4: 104.0}


@pytest.mark.parametrize(
    ("variables", "gpus"),
    [
        ({}, ("0", "1")),
        ({"CUDA_VISIBLE_DEVICES": ""}, ()),
        ({"CUDA_VISIBLE_DEVICES": "4,-1,6"}, ("4",)),
        ({"CUDA_VISIBLE_DEVICES": "4,5,6"}, ("4", "5")),
        ({"CUDA_VISIBLE_DEVICES": "GPU-8f2, GPU-1c3"}, ("GPU-8f2", "GPU-1c3")),
        ({"CUDA_VISIBLE_DEVICES": "7"}, ("7",)),
    ],
)
def test_the_gpus_that_the_environment_names_are_metered(variables, gpus):
    assert used_gpus(variables, 2) == gpus
