"""From what the nodes reported to findings; no check asks anything of a machine."""

from collections.abc import Callable, Iterator

from reperf.doctor.build_checks import environments, trials
from reperf.doctor.case import Case
from reperf.doctor.diagnosis import Finding
from reperf.doctor.gpu_checks import gpus
from reperf.doctor.machine_checks import processors, space
from reperf.doctor.node_checks import answers, clock, fabric, work_folder

CHECKS: tuple[Callable[[Case], Iterator[Finding]], ...] = (
    answers,
    work_folder,
    clock,
    environments,
    processors,
    space,
    gpus,
    fabric,
    trials,
)


def find(case: Case) -> tuple[Finding, ...]:
    """The findings of all checks, in the order of the table."""
    return tuple(finding for check in CHECKS for finding in check(case))
