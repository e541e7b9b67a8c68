"""Train as the flags say; a system's launcher starts this, once a rank.

python -m torch.distributed.run ... workflow/trainers/train.py --backend=torch.backend ...
"""

from trainers.contract.driver import run

if __name__ == "__main__":
    run()
