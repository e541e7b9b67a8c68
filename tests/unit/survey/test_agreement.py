"""Who computes otherwise: to the bit where builds repeat themselves, else by how runs scatter."""

import numpy as np
import pytest
from reperf.survey.agreement import Trained, agreement

USUAL = Trained(((10, 5.5), (20, 5.25)), ("aa", "aa"))
OTHER = Trained(((10, 5.5), (20, 5.250000000000001)), ("bb", "bb"))
NODES = ("node1", "node2", "node3", "node4")


def scattering(off: dict[str, float], runs: int = 5) -> dict[str, list[Trained]]:
    """Nodes whose losses scatter by 1e-4, some of which are off by so many of these."""
    random = np.random.default_rng(3)
    return {
        node: [
            Trained(tuple((at, 5 + 1e-4 * (random.normal() + off.get(node, 0))) for at in (10, 20)))
            for _ in range(runs)
        ]
        for node in NODES
    }


@pytest.mark.parametrize(
    ("changes", "odd"),
    [
        ({}, {}),
        (
            {"node3": [USUAL, OTHER, USUAL]},
            {"node3": "its loss at iteration 20 is 5.250000000000001, the others' 5.25, in 1 of 3"},
        ),
        (
            {"node1": [USUAL._replace(weights=("cc",))] * 3},
            {"node1": "its losses are the others', its weights at the end are not, in 3 of 3"},
        ),
    ],
)
def test_one_bit_in_one_run_is_named(changes, odd):
    found = agreement({node: [USUAL] * 3 for node in NODES} | changes)
    assert found == ("to the bit", {node: f"{why} runs" for node, why in odd.items()}, "")


def test_where_no_result_is_that_of_most_nodes_nobody_is_named():
    found = agreement({"node1": [USUAL] * 2, "node2": [OTHER] * 2})
    apart = "no result is that of most nodes; alike are: node1; node2"
    assert (found.odd, found.apart) == ({}, apart)


@pytest.mark.parametrize(
    ("off", "named"), [({}, []), ({"node2": 10}, ["node2"]), ({"node2": 30, "node4": 9}, [*"24"])]
)
def test_where_runs_scatter_who_is_further_off_is_named(off, named):
    found = agreement(scattering(off))
    assert found.compared == "as closely as runs of one node"
    assert sorted(found.odd) == [f"node{one[-1]}" for one in named]


def test_two_nodes_that_differ_are_apart():
    runs = scattering({"node2": 30})
    found = agreement({node: runs[node] for node in ("node1", "node2")})
    assert (found.odd, bool(found.apart)) == ({}, True)


def test_one_run_of_each_compares_nothing():
    assert agreement({node: [USUAL] for node in NODES}).compared == "not"
