"""The device of a node that is slow by itself is named from the runs of the folder."""

from pathlib import Path

import numpy as np
import pytest
from reperf.doctor.health import findings_of_runs

from tests.helpers.run_records import record_of, small_run


def write(folder: Path, repeat: int, times: list[float | None]) -> None:
    """A run on two nodes of two devices."""
    run = small_run("2n2g", repeat=repeat)
    record = record_of(run, nodes=("node1", "node2"), rank_seconds_alone=times)
    path = folder / run.record
    path.parent.mkdir(parents=True, exist_ok=True)
    record.write(path)


def test_the_slow_device_is_named_and_nodes_whose_devices_are_alike_are_well(tmp_path):
    random = np.random.default_rng(1)
    for repeat in range(1, 8):
        usual = repeat * (1 + 0.002 * random.normal(0, 1, 4))
        write(tmp_path, repeat, [*usual[:3], 1.03 * usual[3]])
    (tmp_path / "results/runs/small/pytorch/2n2g/2/run.json").write_text("{")
    first, second = findings_of_runs(tmp_path)
    assert (first.level, first.nodes) == ("ok", ("node1",))
    assert first.what == "none of 2 slower than the others in 6 runs of this folder"
    assert (second.level, second.nodes) == ("warning", ("node2",))
    assert second.what.startswith("rank 1 takes 3.")


@pytest.mark.parametrize("times", [[], [None] * 4, [1.0, 2.0, 1.0, 1.0]])
def test_runs_that_time_nothing_and_one_run_alone_say_nothing(tmp_path, times):
    write(tmp_path, 1, times)
    assert not list(findings_of_runs(tmp_path))
