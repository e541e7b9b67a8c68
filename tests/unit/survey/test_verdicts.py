"""What a survey says, prints and leaves, from runs of every kind."""

import math
import re
from io import StringIO
from xml.etree import ElementTree as ET

import numpy as np
import pytest
import yaml
from reperf.cli import main
from reperf.config import Report, load_report
from reperf.errors import ReperfError
from reperf.records.survey_record import SurveyedRun, SurveyRecord
from reperf.survey.cell_choice import check_ready, choose, choose_pair
from reperf.survey.node_jobs import name_of_pair, tournament
from reperf.survey.shown import as_junit, as_page, show
from reperf.survey.verdicts import verdicts_of
from rich.console import Console

from tests.helpers.small_benchmark import SMALL

NODES = ("node1", "node2", "node3", "node4", "node5", "<i>")


def surveyed(runs: int = 5) -> SurveyRecord:
    """node1 is slow, node2 computes otherwise, node3 loses runs, node4's rank 1 is slow."""
    random = np.random.default_rng(5)
    found = []
    for number in range(1, runs + 1):
        for node in NODES:
            known = {"node": node, "round": number, "log": f"{node}/{number}.log"}
            if node == "node3" and number < 3:
                found.append(SurveyedRun(**known, status="oom", reason="memory is\nfull"))
                continue
            slower = random.normal(0, 0.2) + (4 if node == "node1" else 0)
            alone = 0.1 + 1e-4 * random.normal(0, 1, 4)
            alone[1] *= 1.02 if node == "node4" else 1
            more = {"losses": {10: 5.5, 20: 5.4 if node == "node2" else 5.25}, "alone": alone}
            rate = 100 * math.exp(-slower / 100)
            found.append(SurveyedRun(**known, status="ok", throughput=rate, **more))
    return SurveyRecord(
        cell="small pytorch 1n4g",
        plan="0" * 64,
        made="2026-11-27T15:00:00+00:00",
        margin=1.0,
        asked=runs,
        absent={"node9": "Slurm says that it is drained"},
        runs=tuple(found),
    )


def printed(record: SurveyRecord, **console: object) -> str:
    stream = StringIO()
    show(record, verdicts_of(record), Console(file=stream, width=300, **console))
    return stream.getvalue()


def with_runs(record: SurveyRecord, **changes: object) -> SurveyRecord:
    """The same survey whose runs are all changed."""
    changed = [run.model_copy(update=changes) for run in record.runs]
    return record.model_copy(update={"runs": tuple(changed)})


def test_each_node_has_its_state_and_what_computes_otherwise_comes_first():
    record = surveyed()
    verdicts = verdicts_of(record)
    assert [(one.node, one.state) for one in verdicts.nodes[:4]] == [
        ("node2", "computes otherwise"),
        ("node1", "slow"),
        ("node4", "slow"),
        ("node9", "no answer"),
    ]
    assert {one.state for one in verdicts.nodes[4:]} == {"ok"}
    content = verdicts.content
    assert content["nodes"]["node4"]["slow_ranks"] == [1]
    assert content["nodes"]["node1"]["judgement"] == "slow"
    assert record.model_copy(update={"verdicts": content}).model_dump_json()
    suite = ET.fromstring(as_junit(record, verdicts))
    assert (suite.get("tests"), suite.get("failures")) == ("7", "4")
    failed = {case.get("name") for case in suite if case.find("failure") is not None}
    assert failed == {"node1", "node2", "node4", "node9"}
    page = as_page(record, verdicts)
    assert page.count("<circle") == 28  # of 30 runs, two gave nothing
    assert "&lt;i&gt;" in page and "<i>" not in page


def test_lines_say_who_why_and_how_sure_and_what_to_type():
    first, *lines = printed(surveyed()).splitlines()
    assert re.fullmatch(
        r"6 nodes, 5 runs each of small pytorch 1n4g; runs of a node scatter by 0\.\d\d %", first
    )
    rows = {line.split("\t")[1]: line for line in lines if "\t" in line}
    assert rows["node2"].startswith(
        "computes otherwise\tnode2\tits loss at iteration 20 is 5.4, the others' 5.25, in 5 of 5"
    )
    assert re.search(r"its rank 1 takes 2\.\d % longer by itself than the node's", rows["node4"])
    assert r"2 of 5 runs gave no number, oom: memory is\nfull" in rows["node3"]
    assert rows["node9"] == "no answer\tnode9\tSlurm says that it is drained"
    assert lines[-5].startswith("slow: slower than the others' median by more than 1 %; of 100")
    assert re.match(r"a rank that takes \d\.\d\d % longer by itself than its node's", lines[-3])
    assert lines[-2:] == [
        'leave out: cluster: {options: ["--exclude=node2,node1,node4"]}',
        "drain: scontrol update nodename=node2,node1,node4 state=drain reason='reperf survey'",
    ]
    assert "computes otherwise" in printed(surveyed(), force_terminal=True)


def test_what_runs_cannot_decide_is_told_with_how_many_would():
    record = surveyed(2)
    random = np.random.default_rng(5)
    alone = [run.model_copy(update={"alone": 1 + 0.02 * random.random(2)}) for run in record.runs]
    text = printed(record.model_copy(update={"runs": tuple(alone)}))
    assert re.search(r"unclear ranks: node1's 0, 1; .* more .*runs of each node would tell", text)
    text = printed(with_runs(record, alone=(), weights=("a", "a")))
    assert "\nranks: not timed by themselves\n" in text


def test_of_healthy_nodes_among_slow_ones_no_percentage_is_told():
    rates = {"node1": 9.0, "node2": 20.1, "node3": 9.1, "node4": 20.0}
    runs = [
        SurveyedRun(node=node, round=number, status="ok", throughput=rate + number / 100, log="l")
        for number in (1, 2, 3)
        for node, rate in rates.items()
    ]
    text = printed(surveyed().model_copy(update={"runs": tuple(runs)}))
    assert "ok\tnode4, node2\tfaster than the others' median\n" in text
    assert re.search(
        r"\nslow\tnode1\t5\d\.\d\d % slower than the others' median, 5\d\.\d\d to 5", text
    )


def with_pairs(*slow: str, runs: int = 5) -> SurveyRecord:
    """The same survey with pairs; those in `slow` are 3 % slower than their slower node."""
    random, record, pairs = np.random.default_rng(5), surveyed(runs), []
    groups = tournament(("node1", "node4", "node5", "<i>"), 3, seed=1)
    for number, pair in (
        (n, pair) for n in range(1, runs + 1) for group in groups for pair in group
    ):
        name = name_of_pair(pair)
        slower = random.normal(0, 0.2) + 4 * ("node1" in pair) + 3 * (name in slow)
        rate = 190 * math.exp(-slower / 100)
        run = SurveyedRun(node=name, round=number, log="l", status="ok", throughput=rate)
        if (name, number) == ("node4+<i>", 2):
            run = run.model_copy(update={"status": "failed", "reason": "gone", "throughput": None})
        pairs.append(run)
    return record.model_copy(update={"pair_cell": "small pytorch 2n4g", "pairs": tuple(pairs)})


def test_a_slow_link_is_named_and_a_slow_nodes_links_are_not():
    record = with_pairs("node4+node5")
    verdicts = verdicts_of(record)
    assert [(one.node, one.state) for one in verdicts.links[:1]] == [("node4+node5", "slow")]
    assert {one.state for one in verdicts.links[1:]} == {"ok"}
    assert len(verdicts.links) == 6
    assert verdicts.exchange == pytest.approx(5, abs=1)
    text = printed(record)
    assert re.search(r"\nslow\tnode4\+node5\t\d\.\d\d % slower than the other links' median", text)
    assert "ok\tnode4+<i>\t" in text
    assert "1 of 5 runs gave no number, failed: gone" in text
    assert re.search(r"the exchange costs a pair \d\.\d\d % of its throughput", text)
    assert "no node's links are all slow: look at the switches" in text
    assert '"--exclude=node2,node1,node4"' in text
    assert ET.fromstring(as_junit(record, verdicts)).get("failures") == "5"
    assert '<th scope="col">link</th>' in as_page(record, verdicts)


def test_a_node_whose_links_are_all_slow_is_named_by_its_port():
    record = with_pairs("node1+node5", "node4+node5", "node5+<i>")
    verdicts = verdicts_of(record)
    assert verdicts.with_slow_links == ["node5"]
    assert not verdicts.is_clean
    assert "every link of node5 is slow: look at its own port first" in printed(record)
    assert '"--exclude=node2,node1,node4,node5"' in printed(record)


def test_links_of_which_no_run_gave_a_number_tell_nothing():
    record = surveyed().model_copy(update={"pair_cell": "small pytorch 2n4g"})
    assert "links: fewer than two have ended a run; allowed: two or more" in printed(record)


@pytest.mark.parametrize("nodes", [3, 4, 5, 8])
def test_a_tournament_pairs_each_node_with_each_other_once_and_nobody_twice_at_a_time(nodes):
    names = [f"node{number}" for number in range(nodes)]
    groups = tournament(names, 99, seed=3)
    pairs = [pair for group in groups for pair in group]
    assert sorted(pairs) == [(a, b) for a in names for b in names if a < b]
    assert all(len({*sum(group, ())}) == 2 * len(group) for group in groups)
    assert len(groups) == nodes - 1 + nodes % 2
    assert tournament(names, 2, seed=3) == tournament(names, 2, seed=3) != tournament(names, 2, 4)
    assert len(tournament(names, 2, seed=3)) == 2


def test_runs_that_gave_nothing_are_told_as_that():
    verdicts = verdicts_of(with_runs(surveyed(), throughput=None, status="oom", alone=()))
    assert {one.state for one in verdicts.nodes} == {"no answer"}
    assert verdicts.untold == "fewer than two have ended a run; allowed: two or more"


def report(**changes: object) -> Report:
    return load_report(SMALL | changes)


def test_the_cell_is_the_largest_of_a_node_and_reads_nothing():
    plan = choose(report(topologies=["1n1g", "2n2g", "1n2g"]))
    assert (plan.run.suite, plan.run.topology, plan.run.input) == ("small", "1n2g", "synthetic")
    assert plan.run.data is None
    assert choose(report(), reads=True).run.data == "data/embedded/tfrecord"
    assert choose(report(), "small-synthetic").run.precision == "amp"


def test_pairs_train_the_cell_on_two_nodes():
    asked = report(topologies=["1n1g", "1n2g", "2n2g"])
    plan = choose_pair(asked, choose(asked))
    assert (plan.run.suite, plan.run.topology, plan.run.input) == ("small", "2n2g", "synthetic")
    without = report(topologies=["1n1g", "1n2g", "2n1g"])
    with pytest.raises(ReperfError, match="--links: suite small has no topology 2n2g, which pairs"):
        choose_pair(without, choose(without))


def first(**changes: object) -> dict:
    """The first suite alone, with some keys changed."""
    return {"suites": [SMALL["suites"][0] | changes], "memory_limit": 10**10}


@pytest.mark.parametrize(
    ("changes", "asked", "reason"),
    [
        ({}, "smal", "--suite smal: not in the report; allowed: small, small-synthetic; did"),
        ({}, "small-synthetic", "--input: suite small-synthetic reads nothing; allowed: a"),
        ({"topologies": ["2n1g"]}, "small", "suite small: no topology has a single node: 2"),
        (first(precision="amp", systems=["oneflow"]), None, "oneflow on 1n1g is unsupported: "),
        (first(batch_size="largest"), None, "batch_size: largest; allowed: a number"),
    ],
)
def test_a_cell_that_cannot_be_surveyed_is_refused(changes, asked, reason):
    with pytest.raises(ReperfError) as refusal:
        choose(report(**changes), asked, reads=True)
    assert reason in str(refusal.value)


def test_a_build_that_is_not_made_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ReperfError, match="`snakemake survey` with the same --profile makes"):
        check_ready(choose(report()))


def test_this_machine_alone_is_refused(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    text = yaml.safe_dump(SMALL | {"topologies": ["1n1g"]})
    (tmp_path / "small.yaml").write_text(text)
    assert main(["survey", "--configfile", "small.yaml"]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line == (
        "reperf: a survey compares nodes, and this is one; allowed: --profile slurm or hosts"
    )
