"""Try a framework on the devices of a run; its launcher starts this as it starts a trainer.

python -m torch.distributed.run ... workflow/trainers/trial.py torch --device=cpu ...
"""

from importlib import import_module

from trainers.contract.trial import parse_trial_flags, try_out

if __name__ == "__main__":
    flags = parse_trial_flags()
    framework = import_module("trainers.frameworks." + flags.framework + ".trial")
    try_out(framework.Devices(flags), flags.bytes)
