"""The verdicts of a survey: which nodes compute otherwise, are slow, or do not answer."""

from collections import defaultdict
from typing import Any, Literal, NamedTuple

from reperf.errors import ReperfError
from reperf.measuring.margin_rule import LIKELY, MOST_RUNS, Judged, Ruling, judge, rank_words
from reperf.records.survey_record import SurveyRecord
from reperf.survey.agreement import Agreement, Trained, agreement
from reperf.text import count

State = Literal["computes otherwise", "slow", "no answer", "unclear", "ok"]
STATES: tuple[State, ...] = ("computes otherwise", "slow", "no answer", "unclear", "ok")
"""The order in which nodes are reported."""
FAULTS = STATES[:3]


class NodeVerdict(NamedTuple):
    """The verdict on a node."""

    node: str
    state: State
    why: str
    place: Judged | None
    slow_ranks: tuple[Judged, ...]
    """Its ranks that are slower by themselves than its other ranks by more than the margin."""


class Verdicts(NamedTuple):
    """The verdicts on all nodes."""

    nodes: tuple[NodeVerdict, ...]
    """In the order of STATES, the slowest first."""
    ruling: Ruling | None
    untold: str
    """Why there is no ruling; "" if there is."""
    losses: Agreement

    def named(self, *states: State) -> list[str]:
        """The nodes in some states."""
        return [one.node for one in self.nodes if one.state in states]

    @property
    def content(self) -> dict[str, Any]:
        """As survey.json holds it."""
        return {
            "nodes": {
                one.node: {
                    "state": one.state,
                    "why": one.why,
                    **(one.place._asdict() if one.place else {}),
                    "slow_ranks": [int(rank.name) for rank in one.slow_ranks],
                }
                for one in self.nodes
            },
            "scatter": self.ruling and self.ruling.scatter,
            "sure": self.ruling and self.ruling.sure,
            "untold": self.untold,
            "losses": self.losses._asdict(),
        }


def verdicts_of(survey: SurveyRecord) -> Verdicts:
    """Judge the runs of a survey."""
    rounds: dict[int, dict[str, float]] = defaultdict(dict)
    trained: dict[str, list[Trained]] = defaultdict(list)
    failed: dict[str, list[str]] = defaultdict(list)
    for run in survey.runs:
        if run.throughput is None:
            failed[run.node].append(f"{run.status}: {run.reason}")
        else:
            rounds[run.round][run.node] = run.throughput
            trained[run.node].append(Trained(tuple(run.losses.items()), run.weights))
    losses, ruling, untold = agreement(trained), None, ""
    try:
        ruling = judge(list(rounds.values()), survey.margin)
    except ReperfError as error:
        untold = str(error)
    places = {place.name: place for place in ruling.places} if ruling else {}
    verdicts = [
        NodeVerdict(node, "no answer", why, None, ()) for node, why in survey.absent.items()
    ]
    for node in dict.fromkeys(run.node for run in survey.runs):
        place, ranks = places.get(node), _slow_ranks(survey, node)
        state: State = place.judgement if place else "no answer"
        why = [_speed(place)] if place else []
        if ranks and place and place.judgement == "slow":
            why += [f"its {rank_words(rank)}" for rank in ranks]
        elif ranks:
            state, why = "slow", [f"its {rank_words(rank)}" for rank in ranks] + why
        if node in losses.odd:
            state, why = "computes otherwise", [losses.odd[node], *why]
        if node in failed:
            several = f"{len(failed[node])} of {count(survey.asked, 'run')} gave no number"
            why.append(f"{several}, {failed[node][0]}")
        verdicts.append(NodeVerdict(node, state, "; ".join(why), place, ranks))
    verdicts.sort(key=lambda one: (STATES.index(one.state), -one.place.slower if one.place else 0))
    return Verdicts(tuple(verdicts), ruling, untold, losses)


def _speed(place: Judged) -> str:
    text = f"{in_words(place.slower)} than the others' median, "
    text += f"{in_words(place.low)} to {in_words(place.high)}"
    if place.judgement == "unclear":
        more = place.more_runs
        told = f"more than {MOST_RUNS} runs" if more is None else count(more, "more run")
        text += f": {told} on each node would tell"
    return text


def in_words(slower: float) -> str:
    """As "2.10 % slower", or "0.40 % faster"."""
    return f"{abs(slower):.2f} % {'faster' if slower < 0 else 'slower'}"


def _slow_ranks(survey: SurveyRecord, node: str) -> tuple[Judged, ...]:
    """The ranks of a node that are slower than its others, by what each takes by itself."""
    rounds = [
        {str(rank): 1 / seconds for rank, seconds in enumerate(run.alone) if seconds}
        for run in survey.runs
        if run.node == node
    ]
    try:
        return judge(rounds, survey.margin, among=len({run.node for run in survey.runs})).slow
    except ReperfError:  # too few runs, or one rank
        return ()


def claims(survey: SurveyRecord, verdicts: Verdicts) -> list[str]:
    """What the verdicts say, and how often they are wrong."""
    ruling = verdicts.ruling
    if ruling is None:
        return [verdicts.untold]
    margin = f"{survey.margin:g} %"
    lines = [
        f"slow: slower than the others' median by more than {margin}; of 100 surveys in which no "
        "node is, at most 5 name a node, and 5 a rank; the intervals are 95 % for all nodes "
        "together",
        f"a node that is {ruling.sure:.2f} % slower or more is named in {LIKELY:.0%} of surveys",
    ]
    if verdicts.losses.apart:
        lines.insert(0, f"losses: {verdicts.losses.apart}")
    elif verdicts.losses.compared != "not":
        who = "the others'" if verdicts.losses.odd else "all nodes'"
        lines.insert(0, f"losses: {who} agree {verdicts.losses.compared}")
    return lines


def advice(survey: SurveyRecord, verdicts: Verdicts) -> list[str]:
    """Commands that leave named nodes out, for people to run."""
    if not (named := verdicts.named("computes otherwise", "slow")):
        return []
    nodes = ",".join(named)
    if survey.hosts:
        return [f"leave out: from cluster.hosts: {nodes}"]
    return [
        f'leave out: cluster: {{options: ["--exclude={nodes}"]}}',
        f"drain: scontrol update nodename={nodes} state=drain reason='reperf survey'",
    ]
