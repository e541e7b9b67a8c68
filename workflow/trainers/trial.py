"""Try a framework on the devices of a run; its launcher starts this as it starts a trainer.

python -m torch.distributed.run ... workflow/trainers/trial.py --backend=torch.backend ...
"""

import os

from trainers.contract.driver import made
from trainers.contract.trial import parse_trial_flags, try_out

if __name__ == "__main__":
    flags = parse_trial_flags()
    try_out(made(flags), flags.bytes, flags.rates)
    os._exit(0)  # as training ends: the frameworks' own clean-up may abort
