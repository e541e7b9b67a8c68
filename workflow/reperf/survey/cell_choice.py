"""What a survey trains: a cell of the report that takes a single node, and one that takes two."""

from reperf.builds import build_of, why_build
from reperf.config import Report, Suite
from reperf.config.words import LARGEST, topology_shape
from reperf.data.set_read import read_of_set
from reperf.errors import ReperfError
from reperf.plans.planning import Plans
from reperf.plans.run_plan import RunPlan
from reperf.suggestions import did_you_mean


def title_of(plan: RunPlan) -> str:
    """What is surveyed, as people read it."""
    run = plan.run
    return f"{run.suite} {run.entry} {run.topology}, {run.iterations} iterations, {run.input}"


def choose(report: Report, suite: str | None = None, *, reads: bool = False) -> RunPlan:
    """Plan the cell with the most devices of one node, by the suite's first system that can.

    Args:
        suite: its name; None: the first that runs anything.
        reads: whether to read what the suite reads; else nothing is read, to survey the devices.

    Raises:
        ReperfError: there is no such suite, or it has no such cell.
    """
    part, chosen = _alone(report, suite, reads=reads)
    cells = [cell for cell in part.cells(chosen) if cell.runs[0].nodes == 1]
    if not cells:
        raise ReperfError(
            f"suite {chosen.name}: no topology has a single node: "
            f"{', '.join(chosen.topologies_of_runs)}; allowed: one such as 1n8g, or another --suite"
        )
    able = [cell for cell in cells if not cell.unsupported]
    if not able:
        run = cells[0].runs[0]
        raise ReperfError(
            f"suite {chosen.name}: {run.entry} on {run.topology} is unsupported: "
            f"{cells[0].unsupported}; allowed: another --suite"
        )
    run = max((cell.runs[0] for cell in able), key=lambda run: topology_shape(run.topology))
    if run.batch_size == LARGEST:
        raise ReperfError(
            f"suite {chosen.name}: batch_size: {LARGEST}; allowed: a number, or another --suite"
        )
    return Plans(part).runs[str(run.folder)]


def choose_pair(report: Report, alone: RunPlan, *, reads: bool = False) -> RunPlan:
    """Plan what a pair of nodes trains: the system of `alone`, on as many devices of each node.

    Raises:
        ReperfError: the suite has no such cell, or it is unsupported.
    """
    part, chosen = _alone(report, alone.run.suite, reads=reads)
    wanted = f"2n{alone.run.devices_per_node}g"
    for cell in part.cells(chosen):
        run = cell.runs[0]
        if (run.entry, run.topology) == (alone.run.entry, wanted):
            if cell.unsupported:
                raise ReperfError(
                    f"--links: suite {chosen.name}: {run.entry} on {wanted} is unsupported: "
                    f"{cell.unsupported}; allowed: another --suite"
                )
            return Plans(part).runs[str(run.folder)]
    raise ReperfError(
        f"--links: suite {chosen.name} has no topology {wanted}, which pairs its "
        f"{alone.run.topology}: {', '.join(chosen.topologies_of_runs)}; allowed: add it, or "
        "another --suite"
    )


def check_ready(plan: RunPlan) -> None:
    """Refuse a cell whose framework or records do not exist: a survey makes neither."""
    run = plan.run
    if why := why_build(build_of(run)):
        raise ReperfError(f"{why}; `snakemake survey` with the same --profile makes it")
    if run.data and read_of_set(run.data, run.input)[0] is None:
        raise ReperfError(
            f"{run.data}: is not converted; `snakemake` with the same --profile converts it"
        )


def _alone(report: Report, suite: str | None, *, reads: bool) -> tuple[Report, Suite]:
    """The report with only one suite, and that suite, which reads nothing unless `reads`."""
    chosen = _suite(report, suite)
    if not reads:
        chosen = chosen.model_copy(update={"input": "synthetic"})
    elif chosen.input == "synthetic":
        raise ReperfError(
            f"--input: suite {chosen.name} reads nothing; allowed: a suite with an input other "
            "than synthetic"
        )
    return report.alone(chosen.name).model_copy(update={"suites": (chosen,)}), chosen


def _suite(report: Report, name: str | None) -> Suite:
    suites = {suite.name: suite for suite in report.suites if suite.entries}
    if name is None and suites:
        return next(iter(suites.values()))
    if name not in suites:
        allowed = f"{', '.join(suites) or 'none: the report runs nothing'}"
        raise ReperfError(
            f"--suite {name or 'left out'}: not in the report; allowed: {allowed}"
            f"{did_you_mean(name or '', suites)}"
        )
    return suites[name]
