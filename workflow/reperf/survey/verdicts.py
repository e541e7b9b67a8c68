"""The verdicts of a survey: nodes that compute otherwise, are slow or do not answer; slow links.

A pair of nodes is at most as fast as its slower node by itself. Any further loss is attributed to
its link, and judged by the rule that judges nodes. Fitting an effect of each node and of each link
to the pairs alone would smear a slow link over its nodes.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import exp, log
from statistics import fmean, median
from typing import Any, Literal, NamedTuple

from reperf.errors import ReperfError
from reperf.measuring.margin_rule import (
    LIKELY,
    MOST_RUNS,
    Judged,
    Ruling,
    judge,
    judge_each,
    longer,
    rank_words,
)
from reperf.records.survey_record import SurveyedRun, SurveyRecord
from reperf.survey.agreement import Agreement, Trained, agreement
from reperf.text import count, listed

State = Literal["computes otherwise", "slow", "no answer", "unclear", "ok"]
STATES: tuple[State, ...] = ("computes otherwise", "slow", "no answer", "unclear", "ok")
"""The order in which nodes are reported."""
FAULTS = STATES[:3]
Rounds = dict[int, dict[str, float]]


class NodeVerdict(NamedTuple):
    """The verdict on a node, or on the link of a pair."""

    node: str
    state: State
    why: str
    place: Judged | None
    slow_ranks: tuple[Judged, ...] = ()
    """Its ranks that are slower by themselves than its other ranks by more than the margin."""


class Verdicts(NamedTuple):
    """The verdicts on all nodes and links."""

    nodes: tuple[NodeVerdict, ...]
    """In the order of STATES, the slowest first."""
    ruling: Ruling | None
    untold: str
    """Why there is no ruling; "" if there is."""
    losses: Agreement
    ranks: dict[str, Ruling]
    """The verdicts on the ranks of each node, by what each takes by itself; of some, none."""
    links: tuple[NodeVerdict, ...] = ()
    """The verdicts on links, in the same order."""
    link_ruling: Ruling | None = None
    links_untold: str = ""
    exchange: float | None = None
    """Percent by which pairs train slower than twice the slower of their nodes."""

    def named(self, *states: State) -> list[str]:
        """The nodes in some states."""
        return [verdict.node for verdict in self.nodes if verdict.state in states]

    @property
    def with_slow_links(self) -> list[str]:
        """The nodes with two or more surveyed links, if all these links are slow."""
        slow = defaultdict[str, list[bool]](list)
        for link in self.links:
            for node in link.node.split("+"):
                slow[node].append(link.state == "slow")
        return [node for node, of_links in slow.items() if len(of_links) > 1 and all(of_links)]

    @property
    def is_clean(self) -> bool:
        """Whether all nodes answered and could be judged, and no node or link is named."""
        apart = bool(self.untold or self.links_untold or self.losses.apart)
        return not apart and all(each.state not in FAULTS for each in self.nodes + self.links)

    @property
    def content(self) -> dict[str, Any]:
        """As survey.json holds it."""
        return {
            "nodes": {
                verdict.node: _content(verdict)
                | {"slow_ranks": [int(rank.name) for rank in verdict.slow_ranks]}
                for verdict in self.nodes
            },
            "ranks_sure": max((ruling.sure for ruling in self.ranks.values()), default=None),
            "links": {verdict.node: _content(verdict) for verdict in self.links},
            "with_slow_links": self.with_slow_links,
            "exchange": self.exchange,
            "links_sure": self.link_ruling and self.link_ruling.sure,
            "links_untold": self.links_untold,
            "scatter": self.ruling and self.ruling.scatter,
            "sure": self.ruling and self.ruling.sure,
            "untold": self.untold,
            "losses": self.losses._asdict(),
        }


def _content(verdict: NodeVerdict) -> dict[str, Any]:
    place = verdict.place._asdict() if verdict.place else {}
    return {"state": verdict.state, "why": verdict.why, **place}


def verdicts_of(survey: SurveyRecord) -> Verdicts:
    """Judge the runs of a survey."""
    rounds = _rounds(survey.runs)
    trained: dict[str, list[Trained]] = defaultdict(list)
    for run in survey.runs:
        if run.throughput is not None:
            trained[run.node].append(Trained(tuple(run.losses.items()), run.weights))
    losses, failed = agreement(trained), _failed(survey.runs, survey.asked)
    of_ranks = judge_each(_rounds_of_ranks(survey.runs), survey.margin)
    ruling, untold = _ruling(rounds, survey.margin)
    places = {place.name: place for place in ruling.places} if ruling else {}
    verdicts = [NodeVerdict(node, "no answer", why, None) for node, why in survey.absent.items()]
    for node in dict.fromkeys(run.node for run in survey.runs):
        place, ranks = places.get(node), of_ranks[node].slow if node in of_ranks else ()
        state: State = place.judgement if place else "no answer"
        why = [_speed(place)] if place else []
        if ranks and place and place.judgement == "slow":
            why += [f"its {rank_words(rank)}" for rank in ranks]
        elif ranks:
            state, why = "slow", [f"its {rank_words(rank)}" for rank in ranks] + why
        if node in losses.odd:
            state, why = "computes otherwise", [losses.odd[node], *why]
        if node in failed:
            why.append(failed[node])
        verdicts.append(NodeVerdict(node, state, "; ".join(why), place, ranks))
    of_nodes = Verdicts(_sorted(verdicts), ruling, untold, losses, of_ranks)
    return _with_links(of_nodes, survey, rounds) if survey.pair_cell else of_nodes


def _with_links(verdicts: Verdicts, survey: SurveyRecord, rounds: Rounds) -> Verdicts:
    """Add the verdicts on links to those on nodes, whose throughputs are given."""
    alone = _levels(rounds)
    shares = [
        {
            pair: throughput / min(alone.get(node, 1) for node in pair.split("+"))
            for pair, throughput in throughputs.items()
        }
        for throughputs in _rounds(survey.pairs).values()
    ]
    beside = verdicts.ruling.scatter if verdicts.ruling else 0
    ruling, untold = _ruling(dict(enumerate(shares)), survey.margin, beside)
    places = {place.name: place for place in ruling.places} if ruling else {}
    failed, links = _failed(survey.pairs, survey.asked), []
    for name in dict.fromkeys(run.node for run in survey.pairs):
        place = places.get(name)
        why = [_speed(place, "the other links' median")] if place else []
        why += [failed[name]] if name in failed else []
        links.append(
            NodeVerdict(name, place.judgement if place else "no answer", "; ".join(why), place)
        )
    typical = median(share for each in shares for share in each.values()) if any(shares) else None
    usual = median(rate for each in rounds.values() for rate in each.values()) if rounds else 0
    return verdicts._replace(
        links=_sorted(links),
        link_ruling=ruling,
        links_untold=untold,
        exchange=100 * (1 - typical / 2 / usual) if typical and usual else None,
    )


def _sorted(verdicts: Iterable[NodeVerdict]) -> tuple[NodeVerdict, ...]:
    def key(verdict: NodeVerdict) -> tuple[int, float]:
        return STATES.index(verdict.state), -verdict.place.slower if verdict.place else 0

    return tuple(sorted(verdicts, key=key))


def _rounds(runs: Sequence[SurveyedRun]) -> Rounds:
    """Round -> node or pair -> its throughput, where it has one."""
    rounds: Rounds = defaultdict(dict)
    for run in runs:
        if run.throughput is not None:
            rounds[run.round][run.node] = run.throughput
    return rounds


def _levels(rounds: Rounds) -> dict[str, float]:
    """Each node's speed relative to the median of its rounds."""
    shares = defaultdict[str, list[float]](list)
    for throughputs in rounds.values():
        usual = median(throughputs.values())
        for node, throughput in throughputs.items():
            shares[node].append(log(throughput / usual))
    return {node: exp(fmean(logs)) for node, logs in shares.items()}


def _failed(runs: Sequence[SurveyedRun], asked: int) -> dict[str, str]:
    """Node or pair -> how many of its runs gave no number, and why the first did not."""
    failed: dict[str, list[str]] = defaultdict(list)
    for run in runs:
        if run.throughput is None:
            failed[run.node].append(f"{run.status}: {run.reason}")
    return {
        name: f"{len(why)} of {count(asked, 'run')} gave no number, {why[0]}"
        for name, why in failed.items()
    }


def _ruling(rounds: Rounds, margin: float, beside: float = 0) -> tuple[Ruling | None, str]:
    """The verdicts on these rounds, or None and the reason why the rule gives none."""
    try:
        return judge(list(rounds.values()), margin, beside=beside), ""
    except ReperfError as error:
        return None, str(error)


def _speed(place: Judged, median_of: str = "the others' median") -> str:
    if place.high < 0:  # than slow nodes, where most of the others are
        return f"faster than {median_of}"
    text = f"{in_words(place.slower)} than {median_of}, "
    if place.low > 0:
        text += f"{place.low:.2f} to {place.high:.2f} %"
    else:
        text += f"at most {in_words(place.high)}"
    if place.judgement == "unclear":
        text += f": {_runs_needed([place])} of each would tell"
    return text


def in_words(slower: float) -> str:
    """As "2.10 % slower", or "0.40 % faster"."""
    return f"{abs(slower):.2f} % {'faster' if slower < 0 else 'slower'}"


def _runs_needed(unclear: Iterable[Judged]) -> str:
    """How many more runs would tell of all these places whether they are slow."""
    more = [place.more_runs for place in unclear]
    known = [one for one in more if one is not None]
    if len(known) < len(more):
        return f"more than {MOST_RUNS} runs"
    return count(max(known), "more run")


def _rounds_of_ranks(runs: Iterable[SurveyedRun]) -> dict[str, list[dict[str, float]]]:
    """Node -> of each of its runs, how fast each of its ranks is by itself."""
    rounds = defaultdict[str, list[dict[str, float]]](list)
    for run in runs:
        rounds[run.node].append({str(at): 1 / one for at, one in enumerate(run.alone) if one})
    return rounds


def claims(survey: SurveyRecord, verdicts: Verdicts) -> list[str]:
    """What the verdicts say, and how often they are wrong."""
    return [*_claims_of_nodes(survey, verdicts), *_claims_of_links(survey, verdicts)]


def _claims_of_links(survey: SurveyRecord, verdicts: Verdicts) -> Iterator[str]:
    ruling = verdicts.link_ruling
    if not survey.pair_cell:
        return
    if ruling is None:
        yield f"links: {verdicts.links_untold}"
        return
    slow = len(ruling.slow)
    yield (
        "links: each pair is compared with its slower node, by the rule for nodes; a link that "
        f"makes its pair {ruling.sure:.2f} % slower or more is named in {LIKELY:.0%} of surveys"
    )
    if verdicts.exchange is not None:
        yield (
            f"the exchange costs a pair {max(0, verdicts.exchange):.2f} % of its throughput; only "
            "a link that training waits for can be named"
        )
    for node in verdicts.with_slow_links:
        yield f"every link of {node} is slow: look at its own port first"
    if slow and not verdicts.with_slow_links:
        yield "no node's links are all slow: look at the switches and cables between the pairs"


def _claims_of_nodes(survey: SurveyRecord, verdicts: Verdicts) -> list[str]:
    ruling = verdicts.ruling
    if ruling is None:
        return [f"nodes: {verdicts.untold}"]
    margin = f"{survey.margin:g} %"
    lines = [
        f"slow: slower than the others' median by more than {margin}; of 100 surveys in which no "
        "node is, at most 5 name a node, and 5 a rank; the intervals are 95 % for all nodes "
        "together",
        f"a node that is {ruling.sure:.2f} % slower or more is named in {LIKELY:.0%} of surveys",
    ]
    lines += _claims_of_ranks(survey, verdicts.ranks)
    if verdicts.losses.apart:
        lines.insert(0, f"losses: {verdicts.losses.apart}")
    elif verdicts.losses.compared != "not":
        whose = "the others'" if verdicts.losses.odd else "all nodes'"
        lines.insert(0, f"losses: {whose} agree {verdicts.losses.compared}")
    return lines


def _claims_of_ranks(survey: SurveyRecord, rulings: Mapping[str, Ruling]) -> Iterator[str]:
    if not rulings:
        if any(len(run.weights) > 1 for run in survey.runs):
            yield "ranks: not timed by themselves"
        return
    sure = longer(max(ruling.sure for ruling in rulings.values()))
    yield (
        f"a rank that takes {sure:.2f} % longer by itself than its node's others, or more, is "
        f"named in {LIKELY:.0%} of surveys"
    )
    unclear = {
        node: [rank for rank in ruling.places if rank.judgement == "unclear"]
        for node, ruling in rulings.items()
    }
    named = [
        f"{node}'s {', '.join(sorted(rank.name for rank in ranks))}"
        for node, ranks in unclear.items()
        if ranks
    ]
    if named:
        needed = _runs_needed(rank for ranks in unclear.values() for rank in ranks)
        yield f"unclear ranks: {listed(named, separator='; ')}: {needed} of each node would tell"


def advice(survey: SurveyRecord, verdicts: Verdicts) -> list[str]:
    """Commands that leave named nodes out, for people to run."""
    named = [*verdicts.named("computes otherwise", "slow"), *verdicts.with_slow_links]
    if not named:
        return []
    nodes = ",".join(dict.fromkeys(named))
    if survey.hosts:
        return [f"leave out: from cluster.hosts: {nodes}"]
    return [
        f'leave out: cluster: {{options: ["--exclude={nodes}"]}}',
        f"drain: scontrol update nodename={nodes} state=drain reason='reperf survey'",
    ]
