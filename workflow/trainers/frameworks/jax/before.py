"""What to know and to do before importing JAX."""

from trainers.contract import process, settings
from trainers.contract.backend import place_in

PLACE = place_in("RANK", "LOCAL_RANK", "WORLD_SIZE")

_MEMORY = {
    # Of a GPU's: what NCCL and cuDNN take for themselves is left. Else JAX stops at 75 %.
    "XLA_PYTHON_CLIENT_MEM_FRACTION": "0.92",
    "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
}


def prepare(flags):
    process.abort_late()
    settings.variables(_MEMORY)
