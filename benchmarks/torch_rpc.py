"""CTR-DNN on one parameter server that is written by hand with torch.distributed.rpc.

Two trainers pull the rows of their batch and all dense weights, and push gradients; the server
updates by plain SGD as they come. python torch_rpc.py ITERATIONS BATCH_SIZE [NAME=NUMBER ...], with
reperf's workflow/ among the modules' folders.
"""

import json
import os
import socket
import sys
import threading
from argparse import Namespace
from multiprocessing import Process

import torch
from torch.distributed import rpc
from trainers.contract.weights import initial_weights, synthetic_batch
from trainers.recipes import ctr

TRAINERS = 2
EVERY = 5
ROLES = ["server", *(f"trainer-{rank}" for rank in range(TRAINERS))]
OVER_TCP = rpc.TensorPipeRpcBackendOptions(_transports=["uv"], _channels=["basic"])
"""As the other systems, and as between nodes: shared memory is polled without a rest."""


def flags_of(arguments: list[str]) -> Namespace:
    iterations, batch_size, *shape = arguments
    pairs = (one.split("=") for one in shape)
    shape = {name: int(number) for name, number in pairs}
    numbers = {"iterations": int(iterations), "batch_size": int(batch_size), "seed": 1}
    return Namespace(shape=shape, proof=False, **numbers)


def weights_of(flags: Namespace) -> dict[str, torch.Tensor]:
    """The recipe's start weights."""
    return {name: torch.from_numpy(one) for name, one in initial_weights(ctr, flags)}


class Server:
    """Holds the weights; its methods are called from afar."""

    held: "Server"

    def __init__(self, flags: Namespace) -> None:
        weights = weights_of(flags)
        self.table = weights.pop(ctr.TABLE)
        self.dense = list(weights.values())
        self.rate = ctr.learning_rate(flags.batch_size)


def pull(rows: torch.Tensor) -> list[torch.Tensor]:
    held = Server.held
    return [held.table.index_select(0, rows), *held.dense]


def push(rows: torch.Tensor, gradients: list[torch.Tensor]) -> None:
    held = Server.held
    of_rows, *of_dense = gradients
    # Six times as fast as index_add_, which takes a row at a time.
    held.table.index_put_((rows,), of_rows * -held.rate, accumulate=True)
    for weight, gradient in zip(held.dense, of_dense, strict=True):
        weight.sub_(gradient, alpha=held.rate)


def loss_of(
    pulled: list[torch.Tensor], places: torch.Tensor, dense: torch.Tensor, labels: torch.Tensor
) -> torch.Tensor:
    """The mean cross-entropy of a batch, whose slots are the places of pulled rows."""
    table, *weights = pulled
    x = torch.cat([table[places].flatten(1), dense], 1)
    for layer in range(0, len(weights), 2):
        x = torch.addmm(weights[layer + 1], x, weights[layer])
        if layer + 2 < len(weights):
            x = torch.relu(x)
    return torch.nn.functional.cross_entropy(x, labels)


_pulled = threading.Event()


def wait_for_first() -> None:
    """Wait until this trainer has pulled start weights."""
    _pulled.wait()


def train(flags: Namespace, rank: int) -> None:
    if rank:
        rpc.rpc_sync(ROLES[1], wait_for_first)
    dense, slots, labels = map(torch.from_numpy, synthetic_batch(ctr, flags, rank))
    pushed = None
    for iteration in range(1, flags.iterations + 1):
        rows, places = torch.unique(slots, return_inverse=True)
        pulled = [one.requires_grad_() for one in rpc.rpc_sync("server", pull, (rows,))]
        _pulled.set()
        loss = loss_of(pulled, places, dense, labels)
        gradients = list(torch.autograd.grad(loss, pulled))
        if pushed is not None:
            pushed.wait()
        pushed = rpc.rpc_async("server", push, (rows, gradients))
        if iteration in (1, flags.iterations) or iteration % EVERY == 0:
            said = {"samples": iteration * flags.batch_size, "loss": loss.item()}
            print(json.dumps({"value": said, "metadata": {"rank": rank}}), flush=True)
    pushed.wait()


def be(flags: Namespace, number: int) -> None:
    torch.set_num_threads(1)
    if number == 0:
        Server.held = Server(flags)
    rpc.init_rpc(ROLES[number], rank=number, world_size=len(ROLES), rpc_backend_options=OVER_TCP)
    if number:
        train(flags, number - 1)
    rpc.shutdown()


if __name__ == "__main__":
    asked = flags_of(sys.argv[1:])
    with socket.create_server(("127.0.0.1", 0)) as probe:
        os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(probe.getsockname()[1]))
    processes = [Process(target=be, args=(asked, number)) for number in range(len(ROLES))]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    sys.exit(any(process.exitcode for process in processes))
