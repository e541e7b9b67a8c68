"""Which node was slower than the others, from the runs that a report has anyway.

The logarithm of a throughput is what its cell has in common, and what its node has: least squares
over all runs on a single node tell the two apart, as far as cells ran on several. A node is named
if it is slower than the others' median by more than a margin: a one-sided t test against the
margin, corrected for the number of nodes by Holm's method. No two healthy nodes are alike, so a
test against no difference would name healthy nodes. docs/measuring.md says how often it is right.

Source: G. A. F. Seber and A. J. Lee, Linear Regression Analysis, 2nd ed., sections 3.1 to 3.5.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from math import exp, log1p, sqrt
from typing import NamedTuple

import numpy as np
import pandas as pd

from reperf.measuring.margin_rule import OF_A_MEDIAN, t_bound, t_tail
from reperf.measuring.marks import SLOW_NODE
from reperf.measuring.statistics import SIGNIFICANCE, holm
from reperf.tables import CELL

MARGIN = 1.0  # percent of a throughput by which a node must be slower
FEWEST_NODES, FEWEST_RUNS = 3, 3
"""Of two nodes nobody can tell which is right; fewer runs of a node are an accident of theirs."""


class Moved(NamedTuple):
    """A cell of which a slow node ran a part."""

    cell: tuple[str, ...]  # by CELL
    median: float  # of all its runs
    without: float | None
    """Of those on other nodes; None: there are none."""


class SlowNode(NamedTuple):
    """A node that is slower than the others."""

    name: str
    runs: int
    slower: float  # percent below the others' median
    low: float
    high: float  # the interval of `slower`; at 95 % for all nodes together
    moved: tuple[Moved, ...]


def slow_nodes(measurements: pd.DataFrame, margin: float = MARGIN) -> list[SlowNode]:
    """The nodes that are slower than the others by more than a margin in percent, slowest first."""
    alone = (measurements["num_nodes"] == 1) & (measurements["status"] == "ok")
    named = measurements["hosts"].str.split().str.len() == 1
    runs = measurements[alone & named].copy()
    runs["cell"] = [tuple(map(str, cell)) for cell in runs[list(CELL)].itertuples(index=False)]
    speeds = runs["throughput"].where(runs["unit"].str.endswith("/s"), 1 / runs["throughput"])
    runs["speed"] = np.log(speeds.astype(float))
    found = [node for part in _comparable(runs) for node in _slow_of(part, margin)]
    return sorted(found, key=lambda node: -node.slower)


def with_marks(summary: pd.DataFrame, nodes: Iterable[SlowNode]) -> pd.DataFrame:
    """summary.csv, with a mark in each cell that ran in part on a slow node."""
    slow = defaultdict(list)
    for node in nodes:
        for moved in node.moved:
            slow[moved.cell].append(f"{SLOW_NODE}{node.name}")
    cells = (tuple(map(str, cell)) for cell in summary[list(CELL)].itertuples(index=False))
    marks = [
        "; ".join(filter(None, dict.fromkeys([*slow[cell], *others.split("; ")])))
        for cell, others in zip(cells, summary["marks"], strict=True)
    ]
    return summary.assign(marks=marks)


def _comparable(runs: pd.DataFrame) -> Iterator[pd.DataFrame]:
    """The runs, in parts whose nodes are linked by cells that ran on several of them."""
    left = set(runs["hosts"])
    while left:
        nodes, before = {min(left)}, 0
        while len(nodes) > before:
            before = len(nodes)
            cells = runs.loc[runs["hosts"].isin(nodes), "cell"]
            nodes = set(runs.loc[runs["cell"].isin(set(cells)), "hosts"])
        left -= nodes
        if len(nodes) >= FEWEST_NODES:
            yield runs[runs["hosts"].isin(nodes)]


def _slow_of(runs: pd.DataFrame, margin: float) -> Iterator[SlowNode]:
    """Those of nodes that cells link."""
    nodes = sorted(set(runs["hosts"]))
    # A column for each cell, then one for each node.
    design = pd.get_dummies(runs["cell"]).join(pd.get_dummies(runs["hosts"])[nodes])
    matrix = design.to_numpy(float)
    inverse = np.linalg.pinv(matrix)
    fitted = inverse @ runs["speed"].to_numpy()
    dof = len(runs) - int(np.linalg.matrix_rank(matrix))
    if dof < 1:
        return
    rest = runs["speed"].to_numpy() - matrix @ fitted
    its = slice(-len(nodes), None)
    effects, variances = fitted[its], (rest @ rest / dof) * (inverse @ inverse.T)[its, its]
    slower, errors = [], []
    for at in range(len(nodes)):
        others = np.full(len(nodes), 1 / (len(nodes) - 1))
        others[at] = 0
        own = np.eye(len(nodes))[at]
        slower.append(float(np.median(np.delete(effects, at)) - effects[at]))
        wide = OF_A_MEDIAN if len(nodes) > FEWEST_NODES else 1
        variance = own @ variances @ own - 2 * own @ variances @ others
        errors.append(sqrt(max(variance + wide * others @ variances @ others, 1e-24)))
    limit, bound = -log1p(-margin / 100), t_bound(SIGNIFICANCE / 2 / len(nodes), dof)
    tails = [t_tail((by - limit) / error, dof) for by, error in zip(slower, errors, strict=True)]
    for name, by, error, p in zip(nodes, slower, errors, holm(tails), strict=True):
        own_runs = runs[runs["hosts"] == name]
        if p <= SIGNIFICANCE and len(own_runs) >= FEWEST_RUNS:
            found, low, high = (
                100 * (1 - exp(-end)) for end in (by, by - bound * error, by + bound * error)
            )
            yield SlowNode(name, len(own_runs), found, low, high, tuple(_moved(runs, name)))


def _moved(runs: pd.DataFrame, name: str) -> Iterator[Moved]:
    for cell, its in runs.groupby("cell", sort=False):
        others = its[its["hosts"] != name]
        if len(others) < len(its):
            without = float(others["throughput"].median()) if len(others) else None
            yield Moved(cell, float(its["throughput"].median()), without)
