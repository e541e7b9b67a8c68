"""A whole survey: choose the cell, train it on every node, judge, show."""

import json
import shutil
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from rich.console import Console

from reperf.config import Report
from reperf.doctor.targets import nodes_of
from reperf.errors import ReperfError
from reperf.files import whole_file, write_whole
from reperf.layout import SURVEY_FOLDER
from reperf.records.survey_record import SurveyedRun, SurveyRecord
from reperf.survey.cell_choice import check_ready, choose, choose_pair, title_of
from reperf.survey.node_jobs import survey_runs, tournament
from reperf.survey.shown import as_junit, as_page, show
from reperf.survey.verdicts import verdicts_of
from reperf.terminal import announce

RECORD, PAGE = SURVEY_FOLDER / "survey.json", SURVEY_FOLDER / "survey.html"


def survey(
    report: Report,
    suite: str | None = None,
    *,
    reads: bool = False,
    runs: int = 5,
    margin: float = 1.0,
    at_once: int | None = None,
    links: int = 0,
    as_json: bool = False,
    junit: Path | None = None,
) -> int:
    """Survey the nodes of a report's cluster, and leave RECORD and PAGE.

    Args:
        report: for a cluster; this process has locked the work folder.
        suite: the suite whose cell is trained; None: the first.
        reads: whether to read what the suite reads.
        runs: of each node, 2 or more.
        margin: percent.
        at_once: nodes that train at the same time; None: all.
        links: how many others each node is then paired with, to survey links; 0: none.
        as_json: whether to print the record instead of a table.
        junit: where to write JUnit's XML.

    Returns:
        1 if a node or link is named, does not answer, or nothing can be told; else 0.

    Raises:
        ReperfError: fewer than two nodes get jobs, or the cell cannot be surveyed.
    """
    assert report.cluster
    plan = choose(report, suite, reads=reads)
    plan_of_pairs = choose_pair(report, plan, reads=reads) if links else None
    part = report.on(plan.run.device)
    why_not = nodes_of(part).why_not()
    nodes = [node for node, why in why_not.items() if not why]
    if len(nodes) < 2:
        there = ", ".join(nodes) or "none"
        raise ReperfError(
            f"a survey compares nodes: the nodes that get jobs are: {there}; allowed: two or more"
        )
    if links and len(nodes) < 3:
        raise ReperfError(
            f"--links compares pairs of nodes: {', '.join(nodes)} make only one; allowed: three "
            "nodes or more, or no --links"
        )
    check_ready(plan)
    shutil.rmtree(SURVEY_FOLDER, ignore_errors=True)  # the last survey's
    begun = datetime.now(UTC).isoformat(timespec="seconds")
    announce(f"surveying {title_of(plan)}")
    train = partial(survey_runs, part, runs=runs, at_once=at_once)
    every = list(train(plan, [[(node,) for node in nodes]], SURVEY_FOLDER))
    pairs: list[SurveyedRun] = []
    if plan_of_pairs:
        able = {run.node for run in every if run.throughput is not None}
        announce(f"surveying {title_of(plan_of_pairs)}")
        groups = tournament([node for node in nodes if node in able], links, report.seed)
        pairs += train(plan_of_pairs, groups, SURVEY_FOLDER / "pairs")
    record = SurveyRecord(
        cell=title_of(plan),
        plan=plan.digest,
        made=begun,
        margin=margin,
        asked=runs,
        hosts=bool(report.cluster.hosts),
        absent={node: why for node, why in why_not.items() if why},
        runs=tuple(every),
        pair_cell=title_of(plan_of_pairs) if plan_of_pairs else "",
        pairs=tuple(pairs),
    )
    verdicts = verdicts_of(record)
    record = record.model_copy(update={"verdicts": verdicts.content})
    record.write(RECORD)
    write_whole(PAGE, as_page(record, verdicts))
    with whole_file(PAGE.with_suffix(".txt")) as stream:
        show(record, verdicts, Console(file=stream))
    if junit:
        write_whole(junit, as_junit(record, verdicts))
    if as_json:
        print(json.dumps(record.model_dump(mode="json"), indent=2, ensure_ascii=False))
    else:
        show(record, verdicts, Console())
        print(f"all of it is in {RECORD} and {PAGE}")
    return 0 if verdicts.is_clean else 1
