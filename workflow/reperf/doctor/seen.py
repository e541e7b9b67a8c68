"""What the doctor has seen of a cluster's nodes, for those who ask nothing else of it."""

from reperf.layout import DIAGNOSIS
from reperf.training.record import Host


def hosts_of_diagnosis(partition: str | None) -> list[Host]:
    """The nodes of a cluster that the doctor saw last; none if it last looked elsewhere.

    Args:
        partition: whose nodes; None: the default one's.
    """
    from reperf.doctor.diagnosis import Diagnosis  # noqa: PLC0415 - every call imports this module

    diagnosis = Diagnosis.read(DIAGNOSIS)
    if diagnosis is None or not diagnosis.on_cluster or diagnosis.partition != partition:
        return []
    return [visit.probe.host for visit in diagnosis.visits if visit.probe]
