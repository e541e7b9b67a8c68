"""Which places are named as slow: by the margin rule in surveys, and from a report's own runs.

Both by simulations, whose truth is known: how wide intervals are, and how often a name is wrong.
"""

import math
import sys

import numpy as np
import pandas as pd
import pytest
from reperf.errors import ReperfError
from reperf.measuring.margin_rule import MOST_DEGREES, judge, t_bound, t_tail
from reperf.measuring.node_effects import slow_nodes
from reperf.tables import CELL

from tests.helpers.small_benchmark import ROOT

sys.path.append(str(ROOT / "benchmarks"))

from surveying import HEALTHY, counted, counted_links

WITHIN = 0.3  # percent by which runs on one node scatter, and healthy nodes of a report differ


def rounds_of(slow: dict[int, float], runs: int = 5, scatter: float = WITHIN):
    """Throughputs of six nodes of which some are slower by percent, round by round."""
    random = np.random.default_rng(1)
    speeds = np.array([-slow.get(node, 0.0) for node in range(6)])
    return [
        {
            f"node{node}": math.exp((speed + hour) / 100)
            for node, speed in enumerate(speeds + scatter * random.normal(0, 1, 6))
        }
        for hour in random.normal(0, 5, runs)
    ]


@pytest.mark.parametrize("dof", [1, 2, 3, 6, 7, 60, 2047])
def test_students_distribution_is_scipys(dof):
    from scipy import stats  # noqa: PLC0415 - takes a second

    for t in (-4.0, -0.3, 0.0, 0.7, 2.5, 9.0):
        assert t_tail(t, dof) == pytest.approx(stats.t.sf(t, dof), abs=1e-12)
    for p in (0.1, 0.001, 1e-5):
        assert t_bound(p, dof) == pytest.approx(stats.t.isf(p, min(dof, MOST_DEGREES)), rel=1e-6)


def test_slow_nodes_are_named_however_many_and_what_a_round_has_in_common_is_none_of_theirs():
    ruling = judge(rounds_of({1: 3.0, 4: 5.0}), 1.0)
    assert [place.name for place in ruling.slow] == ["node4", "node1"]
    assert ruling.scatter == pytest.approx(WITHIN, abs=0.1)
    assert {place.judgement for place in ruling.places[2:]} == {"ok"}
    node4 = ruling.places[0]
    assert node4.low < 100 * (1 - math.exp(-0.05)) < node4.high
    assert node4.p < 1e-6


def test_who_stands_at_the_margin_is_told_how_many_runs_would_tell():
    near = judge(rounds_of({2: 1.5}, scatter=2.0), 1.0).places[0]
    assert (near.name, near.judgement) == ("node2", "unclear")
    assert 1 <= near.more_runs <= 100
    assert near.low < 1 < near.high
    enough = judge(rounds_of({2: 1.5}, scatter=2.0, runs=5 + near.more_runs), 1.0).places[0]
    assert enough.high - enough.low < near.high - near.low
    here = [{"a": math.exp(by), "b": math.exp(-by), "c": 0.99} for by in (0.001, -0.001)]
    at = judge(2 * here, 1.0).places[0]
    assert (at.name, at.judgement, at.more_runs) == ("c", "unclear", None)


def test_a_node_whose_run_is_lost_is_judged_by_its_others():
    rounds = rounds_of({0: 4.0})
    del rounds[0]["node0"], rounds[3]["node5"]
    rounds.append({"node1": 1.0})  # of which nobody can say how fast the hour was
    ruling = judge(rounds, 1.0)
    assert [(place.name, place.runs) for place in ruling.slow] == [("node0", 4)]


def test_runs_that_do_not_scatter_are_judged_all_the_same():
    ruling = judge([{"a": 1.0, "b": 1.0, "c": 0.9}] * 3, 1.0)
    assert [place.name for place in ruling.slow] == ["c"]


@pytest.mark.parametrize(
    ("rounds", "reason"),
    [
        ([], "fewer than two have ended a run; allowed: two or more"),
        ([{"a": 1.0}] * 5, "fewer than two have ended a run; allowed: two or more"),
        ([{"a": 1.0, "b": 2.0}], "one run of each says nothing of their scatter"),
    ],
)
def test_what_tells_nothing_is_refused(rounds, reason):
    with pytest.raises(ReperfError, match=reason):
        judge(rounds, 1.0)


def test_simulated_surveys_of_links_name_a_link_that_is_5_percent_slower_and_no_healthy_one():
    for others in (2, 3):
        assert counted_links(30, 4, 3, others, **HEALTHY | {"link": 5, "node": 3}) == (30, 0)
        assert counted_links(30, 4, 3, others, **HEALTHY)[1] == 0


@pytest.mark.parametrize("surveys", [60, pytest.param(600, marks=pytest.mark.weekly)])
@pytest.mark.parametrize("tails", ["normal", "uneven", "heavy"])
def test_simulated_surveys_name_a_node_that_is_3_percent_slower_and_hardly_ever_a_healthy_one(
    surveys, tails
):
    """As docs/survey.md has it, whose counts are of 1,000; the bounds leave room for chance."""
    for nodes, untrue_at_most in ((4, 0.12), (16, 0.05)):
        # Names of the slow node, and untrue names; a row a deficit.
        rows = list(counted(surveys, nodes, 5, 0.35, tails))
        assert rows[3][0] >= 0.97 * surveys
        assert rows[2][0] >= 0.85 * surveys
        assert max(untrue for _, untrue in rows) <= untrue_at_most * surveys


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
