"""What is checked before plans and a graph are made: whether a report can be run from here."""

from pathlib import Path

from reperf.config import Report
from reperf.data.kinds import KINDS
from reperf.errors import ReperfError, faults_of
from reperf.layout import PUBLISHED_FILES
from reperf.machine import check_compiler, check_containers, check_data, check_fits, check_memory
from reperf.measuring.log_sources import check_sources


def check_report(report: Report, configfile: str) -> None:
    """Refuse a report that cannot be run here, or that lacks what it stands on.

    Args:
        report: with its device decided.
        configfile: its file, for messages.

    Raises:
        ReperfError: names what is wrong, and what is allowed.
    """
    with faults_of(configfile):
        for part in report.of_each_device():
            check_fits(part)
            check_memory(part)
            check_data(part)
            check_containers(part)
            check_compiler(part)
        check_sources(report)
    for data in report.data:
        # Once it is converted, the user's own input is no longer needed.
        if not any(Path("data", data.name).glob("*/manifest.json")):
            with faults_of(f"{configfile}: data.{data.name}"):
                KINDS[data.kind].check(data)
    for file in PUBLISHED_FILES:
        if not file.is_file():
            raise ReperfError(f"{file}: is not there; allowed: as reperf's repository holds it")
