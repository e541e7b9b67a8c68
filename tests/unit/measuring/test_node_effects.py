"""Which node a report's own runs name as slow: by simulated reports, whose truth is known."""

import numpy as np
import pandas as pd
import pytest
from reperf.measuring.node_effects import slow_nodes
from reperf.tables import CELL

WITHIN = 0.3  # percent by which runs on one node scatter, and healthy nodes differ


def simulated(
    seed: int, slow: dict[str, float], cells: int = 8, nodes: int = 4, **change: object
) -> pd.DataFrame:
    """Seven repeats of some cells on nodes at random, as a queue would place them."""
    chance = np.random.default_rng(seed)
    level = {f"n{node}": chance.normal(0, WITHIN) for node in range(nodes)}
    level |= {name: -by for name, by in slow.items()}
    rows = []
    for cell in range(cells):
        for node in chance.integers(0, nodes, 7):
            percent = level[f"n{node}"] + chance.normal(0, WITHIN)
            speed = 100 * (1 + cell) * np.exp(percent / 100)
            rows.append({"suite": f"s{cell}", "hosts": f"n{node}", "throughput": speed})
    usual = dict.fromkeys(CELL[1:], "") | {"num_nodes": 1, "status": "ok", "unit": "images/s"}
    return pd.DataFrame(rows).assign(**usual | change)


@pytest.mark.parametrize("slow", [{}, {"n3": 2.0}, {"n0": 3.0, "n3": 3.0}])
def test_nodes_slower_by_more_than_a_percent_are_named_and_no_healthy_one(slow):
    named = [{node.name for node in slow_nodes(simulated(seed, slow))} for seed in range(20)]
    assert sum(names == {*slow} for names in named) >= 19
    assert not set().union(*named) - {*slow}


def test_a_slow_node_says_by_how_much_and_which_medians_it_moved():
    runs = simulated(1, {"n3": 3.0})
    [node] = slow_nodes(runs)
    assert node.low < 3.0 < node.high
    assert node.runs == sum(runs["hosts"] == "n3")
    assert {moved.cell[0] for moved in node.moved} == set(runs.loc[runs["hosts"] == "n3", "suite"])
    assert all(moved.median <= moved.without for moved in node.moved)
    only = runs[(runs["suite"] != "s0") | (runs["hosts"] == "n3")]
    assert None in [moved.without for moved in slow_nodes(only)[0].moved]


def test_times_count_the_other_way_round():
    runs = simulated(1, {"n3": 3.0}, unit="ms/iteration")
    runs["throughput"] = 1 / runs["throughput"]
    assert [node.name for node in slow_nodes(runs)] == ["n3"]


@pytest.mark.parametrize(
    "change", [{"num_nodes": 2}, {"status": "refused"}, {"hosts": ""}, {"hosts": "n0 n1"}], ids=str
)
def test_only_good_runs_on_one_node_count(change):
    assert slow_nodes(simulated(1, {"n3": 5.0}, **change)) == []


def test_nodes_that_no_cell_links_are_not_compared():
    """What is slow may be the other cells."""
    apart = simulated(1, {}, nodes=3), simulated(2, {}, nodes=3)
    apart[1]["hosts"] = "m" + apart[1]["hosts"]
    apart[1]["suite"] = "t" + apart[1]["suite"]
    apart[1]["throughput"] *= 0.5
    assert slow_nodes(pd.concat(apart)) == []
    two = simulated(1, {"n1": 5.0}, nodes=2)
    assert slow_nodes(two) == []


def test_a_node_with_two_slow_runs_may_be_unlucky():
    runs = simulated(1, {})
    runs.loc[runs.index[:2], "throughput"] *= 0.7
    runs.loc[runs.index[:2], "hosts"] = "new"
    assert slow_nodes(runs) == []
