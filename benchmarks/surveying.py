"""How often `reperf survey` names a node that is slow, and one that is not: simulated surveys.

Runs of a node scatter by 0.3 %, healthy nodes by 0.35 or 0.5 %, rounds by 3 %, as nothing but
their median being taken out matters. A false alarm is a node that is slower than the median of all
nodes by no more than the margin of 1 %. Losses scatter by 1e-4 where a build is not deterministic.
"""

import argparse
from itertools import product

import numpy as np
from reperf.measuring.margin_rule import judge, judge_each
from reperf.records.survey_record import SurveyedRun, SurveyRecord
from reperf.survey.agreement import Trained, agreement
from reperf.survey.node_jobs import name_of_pair, tournament
from reperf.survey.verdicts import verdicts_of

WITHIN, MARGIN = 0.3, 1.0
DEFICITS = (0.0, 1.5, 2.0, 3.0)
LINKS = 0.1
"""The standard deviation of healthy links, percent of a pair's throughput."""


def surveyed(random, nodes, runs, between, *, slow, tails):
    """A survey: whether it names the first node, and whether it has a false alarm.

    Args:
        slow: by how many percent the first of the nodes is slower; 0: as the others scatter.
        tails: what scatters, "normal", "heavy" (Student's t of 3 degrees) or "uneven" (nodes'
            standard deviations from half to twice as large).
    """
    speeds = random.normal(0, between, nodes)
    if slow:
        speeds[0] = -slow
    draw = random.standard_t(3, (runs, nodes)) / 3**0.5 if tails == "heavy" else None
    draw = random.normal(0, 1, (runs, nodes)) if draw is None else draw
    if tails == "uneven":
        draw *= np.exp(random.uniform(np.log(0.5), np.log(2), nodes))
    logs = speeds + WITHIN * draw + random.normal(0, 3, (runs, 1))
    rounds = [dict(zip(map(str, range(nodes)), np.exp(row / 100), strict=True)) for row in logs]
    named = [int(place.name) for place in judge(rounds, MARGIN).slow]
    true = np.median(speeds) - speeds
    return 0 in named, any(true[node] <= MARGIN for node in named)


def counted(surveys, nodes, runs, between, tails):
    """Of so many surveys for each deficit: how many name the node, and how many name untruly."""
    random = np.random.default_rng(7)
    for slow in DEFICITS:
        got = [
            surveyed(random, nodes, runs, between, slow=slow, tails=tails) for _ in range(surveys)
        ]
        yield sum(first for first, _ in got), sum(untrue for _, untrue in got)


def agreed(surveys, nodes, runs, iterations=6, beside=0.0):
    """Surveys of a build that is not deterministic: how many name the first node, another one.

    Args:
        beside: how far the first node's losses are off, in standard deviations of a run's.
    """
    random, first, others = np.random.default_rng(7), 0, 0
    for _ in range(surveys):
        losses = random.normal(5, 1e-4, (nodes, runs, iterations)).cumsum(axis=2)
        losses[0] += beside * 1e-4 * np.sqrt(np.arange(1, iterations + 1))
        odd = agreement(
            {
                str(node): [Trained(tuple(enumerate(map(float, one)))) for one in every]
                for node, every in enumerate(losses)
            }
        ).odd
        first += "0" in odd
        others += bool(odd.keys() - {"0"})
    return first, others


def surveyed_ranks(random, nodes, ranks, runs, *, slow, tails):
    """What the ranks of all nodes take by themselves: does a survey name the first, or another?

    Args:
        slow: by how many percent the first rank of the first node is slower.
        tails: as above; "uneven" are nodes, each with all its ranks.
    """
    speeds = random.normal(0, 0.35, (nodes, ranks))
    speeds[0, 0] -= slow
    shape = (runs, nodes, ranks)
    draw = random.standard_t(3, shape) / 3**0.5 if tails == "heavy" else random.normal(0, 1, shape)
    if tails == "uneven":
        draw *= np.exp(random.uniform(np.log(0.5), np.log(2), (nodes, 1)))
    rates = np.exp((speeds + WITHIN * draw) / 100)
    found = judge_each(
        {
            node: [dict(zip(map(str, range(ranks)), map(float, row), strict=True)) for row in every]
            for node, every in enumerate(rates.swapaxes(0, 1))
        },
        MARGIN,
    )
    named = {(node, int(one.name)) for node, ruling in found.items() for one in ruling.slow}
    true = {
        (node, rank): np.median(np.delete(speeds[node], rank)) - speeds[node, rank]
        for node, rank in named
    }
    return (0, 0) in named, any(by <= MARGIN for by in true.values())


def counted_ranks(surveys, nodes, ranks, runs, **kind):
    """Of so many surveys: how many name the slow rank, and how many name untruly."""
    random = np.random.default_rng(7)
    got = [surveyed_ranks(random, nodes, ranks, runs, **kind) for _ in range(surveys)]
    return sum(first for first, _ in got), sum(untrue for _, untrue in got)


def surveyed_links(random, nodes, runs, others, *, link, node, port, tails):
    """Simulate a survey with --links: does it name the slow links, and raise a false alarm?

    Args:
        link: by how many percent a link makes its pair slower. It is a random link or, with `port`,
            each link of the first node, and then the node must be named.
        node: by how many percent the second node is slower.
    """
    names = [f"n{number}" for number in range(nodes)]
    groups = tournament(names, others, int(random.integers(1e9)))
    pairs = [pair for group in groups for pair in group]
    speeds = dict(zip(names, random.normal(0, 0.35, nodes), strict=True))
    speeds["n1"] -= node
    slow = (
        [pair for pair in pairs if "n0" in pair] if port else [pairs[random.integers(len(pairs))]]
    )
    of_links = {pair: random.normal(0, LINKS) - link * (pair in slow) for pair in pairs}
    draw = (lambda: random.standard_t(3) / 3**0.5) if tails == "heavy" else random.standard_normal

    def run(name, number, log):
        rate = 100 * np.exp((log + WITHIN * draw()) / 100)
        return SurveyedRun(node=name, round=number, status="ok", throughput=rate, log="")

    alone, together = [], []
    for number in range(runs):
        hour = random.normal(0, 3)
        alone += [run(name, number, speeds[name] + hour) for name in names]
        for group in groups:
            minute = hour + random.normal(0, WITHIN)
            for pair in group:
                log = min(speeds[one] for one in pair) + of_links[pair] + minute
                together.append(run(name_of_pair(pair), number, log))
    record = SurveyRecord(
        cell="", pair_cell="pairs", plan="", made="", margin=MARGIN, asked=runs, absent={},
        runs=alone, pairs=together,
    )  # fmt: skip
    verdicts = verdicts_of(record)
    named = {one.node for one in verdicts.links if one.state == "slow"}
    wanted = {name_of_pair(pair) for pair in slow}
    found = "n0" in verdicts.with_slow_links if port else wanted <= named
    true = np.median([*of_links.values()]) - np.array([*of_links.values()])
    untrue = {name_of_pair(pair) for pair, by in zip(pairs, true, strict=True) if by <= MARGIN}
    return found, bool(named & untrue)


def counted_links(surveys, nodes, runs, others, **faults):
    """Count the simulated surveys with --links that name the slow link, and the false alarms."""
    random = np.random.default_rng(7)
    got = [surveyed_links(random, nodes, runs, others, **faults) for _ in range(surveys)]
    return sum(first for first, _ in got), sum(untrue for _, untrue in got)


FAULTS_OF_LINKS = {
    "none": {},
    "link 2 %": {"link": 2},
    "link 3 %": {"link": 3},
    "link 5 %": {"link": 5},
    "link 3 %, node 3 %": {"link": 3, "node": 3},
    "port 3 %": {"link": 3, "port": True},
    "none, heavy": {"tails": "heavy"},
    "link 3 %, heavy": {"link": 3, "tails": "heavy"},
}
HEALTHY = {"link": 0, "node": 0, "port": False, "tails": "normal"}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--surveys", type=int, default=1000)
    parser.add_argument("--nodes", type=int, nargs="+", default=[4, 16, 64])
    parser.add_argument("--runs", type=int, nargs="+", default=[2, 3, 5, 10])
    parser.add_argument("--links", type=int, nargs="+", default=[2, 3], metavar="OTHERS")
    options = parser.parse_args()
    slow = ", ".join(f"{deficit:g} %" for deficit in DEFICITS)
    print(f"of {options.surveys} surveys named if slower by {slow} | with a false alarm, likewise")
    kinds = product(options.nodes, (0.35, 0.5), ("normal", "uneven", "heavy"), options.runs)
    for nodes, between, tails, runs in kinds:
        rows = list(counted(options.surveys, nodes, runs, between, tails))
        named, untrue = (" ".join(f"{row[at]:5}" for row in rows) for at in (0, 1))
        print(f"{nodes:3} nodes, {runs:2} runs, between {between} %, {tails:6} |{named} |{untrue}")
    print("losses that scatter: named if off by 0, 2, 4, 8 deviations | another one, likewise")
    for nodes, runs in product(options.nodes, options.runs):
        rows = [agreed(options.surveys, nodes, runs, beside=by) for by in (0, 2, 4, 8)]
        named, untrue = (" ".join(f"{row[at]:5}" for row in rows) for at in (0, 1))
        print(f"{nodes:3} nodes, {runs:2} runs |{named} |{untrue}")
    print("one rank of one node is slower by so much: named | with a false alarm, likewise")
    kinds = product(options.nodes, (2, 8), ("normal", "uneven", "heavy"), options.runs)
    for nodes, ranks, tails, runs in kinds:
        rows = [
            counted_ranks(options.surveys, nodes, ranks, runs, slow=slow, tails=tails)
            for slow in DEFICITS
        ]
        named, untrue = (" ".join(f"{row[at]:5}" for row in rows) for at in (0, 1))
        print(f"{nodes:3} nodes, {ranks} ranks, {runs:2} runs, {tails:6} |{named} |{untrue}")
    print("with --links, for each fault: surveys that name it, surveys with a false alarm")
    print("; ".join(FAULTS_OF_LINKS))
    for nodes, runs, others in product(options.nodes, options.runs, options.links):
        rows = [
            counted_links(options.surveys, nodes, runs, others, **HEALTHY | faults)
            for faults in FAULTS_OF_LINKS.values()
        ]
        text = "; ".join(f"{named:4} {untrue:3}" for named, untrue in rows)
        print(f"{nodes:3} nodes, {runs:2} runs, {others} others each | {text}", flush=True)


if __name__ == "__main__":
    main()
