"""Try a framework on the devices of a run; its launcher starts this as it starts a trainer.

python -m torch.distributed.run ... workflow/trainers/trial.py --backend=torch.backend ...
"""

import os

from trainers.contract.driver import backend_of
from trainers.contract.trial import parse_trial_flags, trial_of, try_out

if __name__ == "__main__":
    flags = parse_trial_flags()
    try_out(trial_of(backend_of(flags)), flags.bytes, flags.rates)
    os._exit(0)  # as training ends: the frameworks' own clean-up may abort
