"""Which node computes otherwise than the others, by the losses of runs that must be the same.

All nodes train the same model from the same weights on the same samples. Where a second run of a
node gives the same losses to the bit, as most builds do, all nodes must. Elsewhere a node
differs if its losses are further from the others' than runs of one node scatter, by a t test for
each printed iteration, corrected by Bonferroni's method. A node that differs has other hardware or
another library than it should, or computes wrong results: nothing else notices that.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from math import inf, sqrt
from statistics import fmean, median
from typing import Literal, NamedTuple

from reperf.measuring.margin_rule import error_of, t_bound
from reperf.measuring.statistics import SIGNIFICANCE


class Trained(NamedTuple):
    """What a run computed."""

    losses: tuple[tuple[int, float], ...]
    """Iteration and loss, of each that was printed."""
    weights: tuple[str, ...] = ()
    """The digest of each rank's weights at the end."""


class Agreement(NamedTuple):
    """How the nodes' losses were compared, and who differs."""

    compared: Literal["to the bit", "as closely as runs of one node", "not"]
    odd: dict[str, str]
    """Node -> how it differs from the others."""
    apart: str = ""
    """That no result is that of most nodes, so that nobody can be named; "" if one is."""


def agreement(runs: Mapping[str, Sequence[Trained]]) -> Agreement:
    """Compare what nodes computed, each in one or more runs of one plan."""
    again = [node for node, every in runs.items() if len(every) > 1]
    if not again or len(runs) < 2:
        return Agreement("not", {})
    # A faulty node may differ from itself; most nodes show what the build does.
    same = [node for node in again if len(set(runs[node])) == 1]
    return _to_the_bit(runs) if 2 * len(same) > len(again) else _within_repeats(runs)


def _to_the_bit(runs: Mapping[str, Sequence[Trained]]) -> Agreement:
    usual = {node: Counter(every).most_common(1)[0][0] for node, every in runs.items()}
    (common, nodes), *_ = Counter(usual.values()).most_common(1)
    if 2 * nodes <= len(runs):
        groups: dict[Trained, list[str]] = {}
        for node, one in usual.items():
            groups.setdefault(one, []).append(node)
        apart = "; ".join(", ".join(group) for group in groups.values())
        return Agreement("to the bit", {}, f"no result is that of most nodes; alike are: {apart}")
    odd = {
        node: f"{_difference(others[0], common)}, in {len(others)} of {len(every)} runs"
        for node, every in runs.items()
        if (others := [one for one in every if one != common])
    }
    return Agreement("to the bit", odd)


def _difference(run: Trained, most: Trained) -> str:
    """Where two runs first differ."""
    usual = dict(most.losses)
    for iteration, loss in run.losses:
        if loss != usual.get(iteration):
            expected = usual.get(iteration)
            return f"its loss at iteration {iteration} is {loss}, the others' {expected}"
    return "its losses are the others', its weights at the end are not"


def _within_repeats(runs: Mapping[str, Sequence[Trained]]) -> Agreement:
    losses = {node: [dict(one.losses) for one in every] for node, every in runs.items()}
    common = sorted(set.intersection(*(set(one) for every in losses.values() for one in every)))
    level = SIGNIFICANCE / 2 / max(1, len(losses) * len(common))
    odd: dict[str, str] = {}
    # The furthest node is taken out first: until then, others seem to be off, too.
    while off := sorted(_off(losses, common, level)):
        _, node, why = off[-1]
        if len(losses) == 2:
            apart = f"no result is that of most nodes; apart are: {', '.join([*losses, *odd])}"
            return Agreement("as closely as runs of one node", {}, apart)
        odd[node] = why
        del losses[node]
    return Agreement("as closely as runs of one node", odd)


def _off(
    losses: Mapping[str, Sequence[Mapping[int, float]]], common: Sequence[int], level: float
) -> Iterator[tuple[float, str, str]]:
    """How far nodes are off the others, of what chance allows: above 1, and in words."""
    for node, iteration in product(losses, common):
        others = [[one[iteration] for one in losses[other]] for other in losses if other != node]
        own = [one[iteration] for one in losses[node]]
        # Of the others alone: a faulty node may also scatter.
        dof = sum(len(every) - 1 for every in others)
        if not dof:
            continue
        squares = sum((loss - fmean(every)) ** 2 for every in others for loss in every)
        scatter, expected = sqrt(squares / dof), median(map(fmean, others))
        allowed = t_bound(level, dof) * error_of(scatter, len(own), len(own) + dof + len(others))
        distance = abs(fmean(own) - expected)
        if distance > allowed:
            why = (
                f"its loss at iteration {iteration} is {fmean(own):.9g} in the mean, the others' "
                f"{expected:.9g}; runs of one node scatter by {scatter:.2g}"
            )
            yield distance / allowed if allowed else inf, node, why
