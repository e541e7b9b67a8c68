"""What the doctor has measured of devices, for whoever trains on them."""

from reperf.builds import build_of
from reperf.config import Run
from reperf.doctor.diagnosis import Diagnosis
from reperf.doctor.trials import name_of
from reperf.layout import DIAGNOSIS


def matrix_rate(run: Run, node: str, dtype: str) -> float | None:
    """How fast a run's devices multiply matrices, as the doctor measured with the same build.

    Args:
        node: the run's first.
        dtype: in which it computes.

    Returns:
        Floating-point operations a second of a device; None if the doctor has not measured it.
    """
    diagnosis = Diagnosis.read(DIAGNOSIS)
    if diagnosis is None:
        return None
    build = build_of(run)
    as_built = {
        visit.node: visit.probe.environments[build.id].recipe_sha256
        for visit in diagnosis.visits
        if visit.probe and build.id in visit.probe.environments
    }
    if as_built.get(node) != build.recipe_digest:
        return None
    asked = name_of(run), (node,), run.threads
    trials = (one for one in diagnosis.trials if (one.name, one.nodes, one.threads) == asked)
    return next((trial.matrix_rates.get(dtype) for trial in trials), None)
