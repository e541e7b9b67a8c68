"""Start Paddle's own launcher, prepared for what it gets wrong: python -m trainers.launchers.paddle

It reads an empty CUDA_VISIBLE_DEVICES as one GPU, knows the first node by address alone, and takes
as a node's own address what its name resolves to, which others often cannot reach.
"""

import os
import runpy
import socket
import sys

from paddle.distributed.launch.context.node import Node

from trainers.contract.ports import address_towards


def main():
    if not os.environ.get("CUDA_VISIBLE_DEVICES"):
        os.environ.pop("CUDA_VISIBLE_DEVICES", None)
    place = next(i for i, argument in enumerate(sys.argv) if argument.startswith("--master="))
    name, port = sys.argv[place][len("--master=") :].split(":")
    head = socket.gethostbyname(name)
    sys.argv[place] = f"--master={head}:{port}"
    own = address_towards(head, int(port))
    Node.get_host_ip = lambda node: own
    runpy.run_module("paddle.distributed.launch", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
