"""Start TensorFlow's workers on one node: python -m trainers.launchers.tensorflow ... program ...

TensorFlow has no launcher: it learns from TF_CONFIG who takes part. One node runs a single process,
in which MirroredStrategy serves all devices. On several nodes each device is a worker of
MultiWorkerMirroredStrategy, which uses only one CPU device per process.
"""

import argparse
import json
import os

from trainers.launchers.ranks import run_ranks

SETTINGS = {
    "TF_CPP_MIN_LOG_LEVEL": "2",  # errors
    # Each GPU's kernels get threads of their own, which readers of data cannot keep busy.
    "TF_GPU_THREAD_MODE": "gpu_private",
    # Else half precision is transposed around each batch norm.
    "TF_USE_CUDNN_BATCHNORM_SPATIAL_PERSISTENT": "1",
}


def main():
    for name, value in SETTINGS.items():
        os.environ.setdefault(name, value)
    flags = parse_flags()
    hosts = flags.hosts.split(",")
    if len(hosts) == 1:
        run_ranks(flags.command, [{"LOCAL_DEVICES": str(flags.devices_per_node)}])
        return
    local = range(flags.devices_per_node)
    workers = [f"{host}:{flags.port + number}" for host in hosts for number in local]
    run_ranks(
        flags.command,
        [
            {
                "LOCAL_DEVICES": "1",
                "LOCAL_RANK": str(number),
                "TF_CONFIG": tf_config(workers, flags.node_rank * len(local) + number),
            }
            for number in local
        ],
    )


def tf_config(workers, index):
    task = {"type": "worker", "index": index}
    return json.dumps({"cluster": {"worker": workers}, "task": task})


def parse_flags():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--hosts", required=True, help="addresses of all nodes, by commas")
    parser.add_argument("--node-rank", required=True, type=int)
    parser.add_argument("--devices-per-node", required=True, type=int)
    parser.add_argument("--port", required=True, type=int, help="of each node's first worker")
    parser.add_argument("command", nargs=argparse.REMAINDER, help="the trainer and its flags")
    return parser.parse_args()


if __name__ == "__main__":
    main()
