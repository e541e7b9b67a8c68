"""Where repeats of a cell find what their framework has compiled for one of them."""

import shutil
from hashlib import sha256
from pathlib import Path

from reperf.config import Run
from reperf.systems import load_systems
from reperf.training.tries import this_call

_FOLDER = Path(".cache/compiled")


def compiled_folder(run: Run) -> Path | None:
    """The folder in which this call's repeats of a run's cell share compiled programs.

    What earlier calls left is removed: each call compiles at least once for each cell, so that the
    most memory that a cell's runs took counts the compiler's, whatever was trained before.

    Returns:
        None for systems that share none; on GPUs, where a framework tries kernels to find the
        fastest, which each repeat must do for itself; and outside a call of Snakemake, which could
        not tell one call from the next.
    """
    call = this_call()
    if run.device != "cpu" or not call or not load_systems()[run.system].shares_compiled:
        return None
    own = _FOLDER / sha256(call.encode()).hexdigest()[:12]
    for other in _FOLDER.glob("*"):
        if other != own:
            shutil.rmtree(other, ignore_errors=True)
    return own / run.suite / run.entry / run.topology
