"""Time all-reduces between all processes, as training does them: gloo on CPUs, NCCL on GPUs.

The framework's own launcher starts one process per device. Rank 0 prints one line,
`:::ALL-REDUCE {...}`.
"""

import argparse
import json
import os
import statistics
import time

import torch
import torch.distributed as dist

WARM_UP, TIMED = 2, 5


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", required=True, choices=("cpu", "cuda"))
    parser.add_argument("--bytes", required=True, type=int, nargs="+")
    flags = parser.parse_args()
    device = torch.device(flags.device)
    if flags.device == "cuda":
        device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
        torch.cuda.set_device(device)
    dist.init_process_group("gloo" if flags.device == "cpu" else "nccl")
    transfers = [{"bytes": n, "seconds": time_all_reduce(n, device)} for n in flags.bytes]
    if dist.get_rank() == 0:
        answer = {"world_size": dist.get_world_size(), "backend": dist.get_backend()}
        print(":::ALL-REDUCE " + json.dumps({**answer, "transfers": transfers}), flush=True)
    dist.barrier()
    dist.destroy_process_group()


def time_all_reduce(size, device):
    """Median seconds of an all-reduce of float32 numbers that fill `size` bytes.

    Raises:
        RuntimeError: a rank got a sum other than that of all ranks' numbers.
    """
    seconds = []
    for _ in range(WARM_UP + TIMED):
        numbers = torch.ones(size // 4, device=device)
        dist.barrier()
        synchronize(device)
        start = time.perf_counter()
        dist.all_reduce(numbers)
        synchronize(device)
        seconds.append(time.perf_counter() - start)
        if not bool((numbers == dist.get_world_size()).all()):
            raise RuntimeError(f"an all-reduce of {size} bytes gave a wrong sum")
    return statistics.median(seconds[WARM_UP:])


def synchronize(device):
    """Wait until the device has finished all its work."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


if __name__ == "__main__":
    main()
