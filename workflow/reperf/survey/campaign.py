"""A whole survey: choose the cell, train it on every node, judge, show."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console

from reperf.config import Report
from reperf.doctor.targets import nodes_of
from reperf.errors import ReperfError
from reperf.files import whole_file, write_whole
from reperf.layout import SURVEY_FOLDER
from reperf.records.survey_record import SurveyRecord
from reperf.survey.cell_choice import check_ready, choose, title_of
from reperf.survey.node_jobs import survey_nodes
from reperf.survey.shown import as_junit, as_page, show
from reperf.survey.verdicts import FAULTS, verdicts_of

RECORD, PAGE = SURVEY_FOLDER / "survey.json", SURVEY_FOLDER / "survey.html"


def survey(
    report: Report,
    suite: str | None = None,
    *,
    reads: bool = False,
    runs: int = 5,
    margin: float = 1.0,
    at_once: int | None = None,
    as_json: bool = False,
    junit: Path | None = None,
    tell: Callable[[str], None],
) -> int:
    """Survey the nodes of a report's cluster, and leave RECORD and PAGE.

    Args:
        report: for a cluster; this process has locked the work folder.
        suite: the suite whose cell is trained; None: the first.
        reads: whether to read what the suite reads.
        runs: of each node, 2 or more.
        margin: percent.
        at_once: nodes that train at the same time; None: all.
        as_json: whether to print the record instead of a table.
        junit: where to write JUnit's XML.
        tell: takes a line of progress.

    Returns:
        1 if a node is named, does not answer, or nothing can be told; else 0.

    Raises:
        ReperfError: fewer than two nodes get jobs, or the cell cannot be surveyed.
    """
    assert report.cluster
    plan = choose(report, suite, reads=reads)
    check_ready(plan)
    part = report.on(plan.run.device)
    why_not = nodes_of(part).why_not()
    nodes = [node for node, why in why_not.items() if not why]
    if len(nodes) < 2:
        there = ", ".join(nodes) or "none"
        raise ReperfError(
            f"a survey compares nodes: the nodes that get jobs are: {there}; allowed: two or more"
        )
    made = datetime.now(UTC).isoformat(timespec="seconds")
    tell(f"surveying {title_of(plan)}")
    every = survey_nodes(part, plan, nodes, runs=runs, at_once=at_once, tell=tell)
    record = SurveyRecord(
        cell=title_of(plan),
        plan=plan.digest,
        made=made,
        margin=margin,
        asked=runs,
        hosts=bool(report.cluster.hosts),
        absent={node: why for node, why in why_not.items() if why},
        runs=tuple(every),
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
    return 1 if verdicts.untold or verdicts.losses.apart or verdicts.named(*FAULTS) else 0
