"""CTR-DNN on a framework's parameter server as its guide writes it, without reperf's driver.

One server, two trainers: python servers_alone.py WAY ITERATIONS BATCH_SIZE [NAME=NUMBER ...], with
reperf's workflow/ among the modules' folders. WAY is sync, async or geo, of Paddle 1.8; session, of
TensorFlow's v1 API; or strategy, its ParameterServerStrategy, with a coordinator of its own. Each
trains one batch over and over, from weights as the framework starts them.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
from trainers.contract import process
from trainers.contract.ports import claimed_ports
from trainers.recipes import ctr

TRAINERS = 2
EVERY = 5


class Asked:
    """What one process does: `way`, `role` (ps, worker or chief), `number` and the batch."""

    def __init__(self):
        self.way, iterations, batch_size, *pairs = sys.argv[1:]
        self.iterations, self.batch_size = int(iterations), int(batch_size)
        self.shape = {name: int(value) for name, value in (one.split("=") for one in pairs)}
        self.rate = ctr.learning_rate(self.batch_size)
        self.addresses = json.loads(os.environ.get("ADDRESSES", "{}"))
        self.role, self.number = os.environ.get("ROLE"), int(os.environ.get("NUMBER", "0"))
        random = np.random.RandomState(self.number)
        self.batch = ctr.synthetic_batch(self.shape, self.batch_size, random)

    def say(self, iteration, loss, trainers=1):
        if iteration in (1, self.iterations) or iteration % EVERY == 0:
            said = {"samples": iteration * trainers * self.batch_size, "loss": float(loss())}
            print(json.dumps({"value": said, "metadata": {"rank": self.number}}), flush=True)


def main():
    way = Asked().way
    roles = {"ps": 1, "worker": TRAINERS, **({"chief": 1} if way == "strategy" else {})}
    claims = claimed_ports(sum(roles.values()))  # held until this process ends
    free = (f"127.0.0.1:{port}" for port in claims)
    addresses = {role: [next(free) for _ in range(many)] for role, many in roles.items()}
    module = "tensorflow_alone.py" if way in ("session", "strategy") else "fleet_alone.py"
    command = [sys.executable, str(Path(__file__).with_name(module)), *sys.argv[1:]]
    variables = dict(os.environ, ADDRESSES=json.dumps(addresses), CPU_NUM="1")
    if process.is_amd_with_avx2():  # as trainers.frameworks.paddle.before has it
        variables.setdefault("MKL_DEBUG_CPU_TYPE", "5")
    started = {role: [] for role in roles}
    for role, many in roles.items():
        for number in range(many):
            own = dict(variables, ROLE=role, NUMBER=str(number))
            started[role].append(subprocess.Popen(command, env=own))
    codes = [one.wait() for one in started["chief" if way == "strategy" else "worker"]]
    for one in (one for every in started.values() for one in every):
        one.kill()  # servers never end by themselves
        one.wait()
    sys.exit(any(codes))


if __name__ == "__main__":
    main()
