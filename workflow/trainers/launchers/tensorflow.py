"""Start TensorFlow's workers on one node: python -m trainers.launchers.tensorflow ... program ...

TensorFlow learns from TF_CONFIG who takes part. Each device is a process of its own.
"""

import json

from trainers.contract import settings
from trainers.contract.ports import claimed_ports
from trainers.launchers.ranks import launch_flags, run_ranks

SETTINGS = {
    "TF_CPP_MIN_LOG_LEVEL": "2",  # errors
    # Each GPU's kernels get threads of their own, which readers of data cannot keep busy.
    "TF_GPU_THREAD_MODE": "gpu_private",
    # Else half precision is transposed around each batch norm.
    "TF_USE_CUDNN_BATCHNORM_SPATIAL_PERSISTENT": "1",
}


def main():
    settings.variables(SETTINGS)
    parser = launch_flags(__doc__.splitlines()[0], meet=False)
    parser.add_argument("--hosts", required=True, help="addresses of all nodes, by commas")
    flags = parser.parse_args()
    hosts, local = flags.hosts.split(","), range(flags.devices_per_node)
    # Of one node all is known here; of several, each must know where the others' workers will be.
    alone = len(hosts) == 1
    claims = claimed_ports(len(local)) if alone else {}
    ports = list(claims) or [flags.port + number for number in local]
    workers = [f"{host}:{port}" for host in hosts for port in ports]
    first, ranks = flags.node_rank * len(local), []
    for number in local:
        ranks.append({"LOCAL_RANK": str(number)})
        if len(workers) > 1:
            task = {"type": "worker", "index": first + number}
            config = {"cluster": {"worker": workers}, "task": task}
            ranks[-1]["TF_CONFIG"] = json.dumps(config)
    run_ranks(flags.command, ranks, first)


if __name__ == "__main__":
    main()
