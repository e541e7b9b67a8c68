"""All checks, from what the nodes reported to findings; none asks anything of a machine.

Here are those of whether the nodes can work together: folder, clocks, and what connects them.
"""

from collections.abc import Callable, Iterator

from reperf.doctor.build_checks import compilers, environments, trials
from reperf.doctor.case import Case, Verdict, finding, same
from reperf.doctor.diagnosis import Finding, Probe
from reperf.doctor.gpu_checks import gpus
from reperf.doctor.machine_checks import processors, space
from reperf.printed import count

CLOCKS_APART_SECONDS = 1.0


def answers(case: Case) -> Iterator[Finding]:
    """Every node that gets jobs answers, and there are enough of them for every run."""
    for visit in case.visits:
        if not visit.offered:
            yield finding("answer", (visit.node,), Verdict("warning", visit.trouble))
        elif visit.probe is None:
            advice = "runs will be sent there: repair it or take it out of the partition"
            yield finding("answer", (visit.node,), Verdict("error", visit.trouble, advice))
    if case.nodes:
        yield finding("answer", case.nodes, Verdict("ok", "answered"))
    offered, wanted = sum(visit.offered for visit in case.visits), case.report.largest_shape[0]
    if offered < wanted:
        what = f"{count(offered, 'node')} can be used, runs ask for {wanted}"
        nodes = tuple(visit.node for visit in case.visits)
        yield finding("answer", nodes, Verdict("error", what))


def work_folder(case: Case) -> Iterator[Finding]:
    """What the caller writes there, each node can read, and the other way round."""
    good, advice = [], "work in a folder that all nodes see at the same path"
    for visit in case.visits:
        if not visit.probe:
            continue
        unseen = "" if visit.note_arrived else "the caller cannot see what it writes"
        if trouble := visit.probe.shared_trouble or unseen:
            yield finding("work folder", (visit.node,), Verdict("error", trouble, advice))
        else:
            good.append(visit.node)
    if good:
        yield finding("work folder", tuple(good), Verdict("ok", "read and written"))


def clock(case: Case) -> Iterator[Finding]:
    """The nodes' clocks agree with this machine's, which looks at their files."""
    behind = {visit.node: visit.clock_offset or 0.0 for visit in case.visits if visit.probe}
    good = {}
    for node, by in behind.items():
        if abs(by) < CLOCKS_APART_SECONDS:
            good[node] = abs(by)
            continue
        what = f"{abs(by):.1f} s {'behind' if by > 0 else 'ahead of'} this machine's"
        advice = "set the clocks by NTP: Snakemake compares the times of files"
        yield finding("clock", (node,), Verdict("warning", what, advice))
    if good:
        what = f"within {max(good.values()):.2f} s, transfer included"
        yield finding("clock", tuple(good), Verdict("ok", what))


def fabric(case: Case) -> Iterator[Finding]:
    """The ports of InfiniBand and RoCE adapters are up, and equally fast on all nodes."""
    return same(
        case, "InfiniBand", _ports, advice="the slowest link sets the speed of a run: see ibstat"
    )


def _ports(probe: Probe) -> str | None:
    rates = [f"{port.gigabits:g} Gb/s {port.link}" for port in probe.fabric if port.active]
    if probe.fabric and not rates:
        return "all ports down"
    return ", ".join(f"{rates.count(rate)} x {rate}" for rate in dict.fromkeys(rates)) or None


CHECKS: tuple[Callable[[Case], Iterator[Finding]], ...] = (
    answers,
    work_folder,
    clock,
    environments,
    compilers,
    processors,
    space,
    gpus,
    fabric,
    trials,
)


def find(case: Case) -> tuple[Finding, ...]:
    """The findings of all checks, in the order of the table."""
    return tuple(finding for check in CHECKS for finding in check(case))
