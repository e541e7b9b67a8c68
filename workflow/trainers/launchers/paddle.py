"""Start Paddle's own launcher where it would not find its way.

Used as python -m trainers.launchers.paddle ..., with the flags of paddle.distributed.launch.

It takes an empty CUDA_VISIBLE_DEVICES for a list of one GPU, and finds none for a second rank. It
knows the first node by its address alone, not by its name, and takes for a node's own address what
its name stands for, which is often one that other nodes cannot reach.
"""

import os
import runpy
import socket
import sys

from paddle.distributed.launch.context.node import Node


def main():
    if not os.environ.get("CUDA_VISIBLE_DEVICES"):
        os.environ.pop("CUDA_VISIBLE_DEVICES", None)
    place = next(i for i, argument in enumerate(sys.argv) if argument.startswith("--master="))
    name, port = sys.argv[place][len("--master=") :].split(":")
    head = socket.gethostbyname(name)
    sys.argv[place] = f"--master={head}:{port}"
    own = own_address(head, int(port))
    Node.get_host_ip = lambda node: own
    runpy.run_module("paddle.distributed.launch", run_name="__main__", alter_sys=True)


def own_address(head, port):
    """This node's address on the way to the first one; nothing is sent."""
    with socket.socket(type=socket.SOCK_DGRAM) as way:
        way.connect((head, port))
        return way.getsockname()[0]


if __name__ == "__main__":
    main()
