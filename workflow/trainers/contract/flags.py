"""The flags that tell every trainer what to do."""

import argparse
import os

from trainers.contract.precision import WORDS
from trainers.contract.process import gpus_of_node, limit_memory, usable_cores
from trainers.contract.recipe import clips

MOST_LOADER_THREADS = 16
"""More are not started for a device unless they are asked for."""


def parse_names(argv=None):
    """Read the flags that name what trains.

    Args:
        argv: flags; by default those of this process.

    Returns:
        Their values, of which `part` is a dictionary; and the other flags.
    """
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--recipe", required=True, help="in trainers/recipes: resnet50")
    parser.add_argument("--backend", required=True, help="in trainers/frameworks: torch.backend")
    parser.add_argument("--model", required=True, help="in its folder: resnet50.ResNet50")
    parser.add_argument("--batches", help="what reads data, likewise")
    parser.add_argument(
        "--part", nargs="*", type=_named, default=[], help="what else the system brings, likewise"
    )
    names, others = parser.parse_known_args(argv)
    names.part = dict(names.part)
    return names, others


def parse_flags(recipe, argv=None):
    """Read the flags that all trainers have.

    Args:
        recipe: the workload's numbers, a module of trainers.recipes.
        argv: the flags; by default those of this process.

    Returns:
        Their values; `shape` is a dictionary, `pipeline` a tuple, which is empty without one.
    """
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--workload", required=True)
    parser.add_argument(
        "--shape", nargs="*", type=_pair, default=[], help="the workload's, such as image_size=224"
    )
    parser.add_argument("--precision", required=True, choices=WORDS)
    parser.add_argument("--batch-size", required=True, type=int, help="samples per device")
    parser.add_argument(
        "--accumulation", type=int, default=1, help="batches per device in an iteration"
    )
    parser.add_argument(
        "--pipeline", nargs="*", type=int, default=[], help="replicas of each pipeline stage"
    )
    parser.add_argument("--micro-batches", type=int, help="into how many it cuts a batch")
    parser.add_argument(
        "--schedule", help="of a pipeline's micro-batches; left out: as the system has it"
    )
    parser.add_argument("--shard", type=int, help="over how many devices weights are spread")
    parser.add_argument("--tensor", type=int, help="over how many devices each layer is spread")
    parser.add_argument("--iterations", required=True, type=int)
    parser.add_argument("--print-every", required=True, type=int, help="iterations per log line")
    parser.add_argument("--input", required=True, help="a record format, folder or synthetic")
    parser.add_argument("--data", help="folder of what is read")
    parser.add_argument("--device", required=True, choices=("cpu", "cuda"))
    parser.add_argument("--threads", required=True, type=int, help="CPU threads per device")
    parser.add_argument(
        "--loader-threads",
        type=int,
        help="of --threads or besides them, read and decode; left out: on a CPU as many as them, "
        f"on a GPU the CPUs of the node over its GPUs, up to {MOST_LOADER_THREADS}",
    )
    parser.add_argument(
        "--devices-per-node", type=int, default=1, help="among which a node's CPUs are shared"
    )
    parser.add_argument(
        "--memory-limit", type=int, help="bytes of address space that this process may take"
    )
    parser.add_argument("--seed", required=True, type=int)
    parser.add_argument(
        "--dynamic-loss-scale", action="store_true", help="of float16, in place of a fixed one"
    )
    parser.add_argument("--no-clip", action="store_true", help="leave the gradients' norm as it is")
    parser.add_argument("--unpadded", action="store_true", help="compute real tokens alone")
    parser.add_argument(
        "--together",
        action="store_true",
        help="each rank keeps its own time, logs its own steps, and does so until all have made "
        "their iterations",
    )
    parser.add_argument(
        "--push-every",
        type=int,
        metavar="ITERATIONS",
        help="train alone for so long, then tell parameter servers by what each weight has changed",
    )
    parser.add_argument("--compile", action="store_true", help="compile the model first")
    parser.add_argument(
        "--recompute",
        choices=("some", "all"),
        help="recompute a layer's features for its gradients; some: keep those of products and "
        "attention",
    )
    parser.add_argument(
        "--rowwise", action="store_true", help="in float8, scale each row by itself"
    )
    parser.add_argument("--dali", action="store_true", help="let NVIDIA DALI read and decode")
    parser.add_argument(
        "--proof",
        action="store_true",
        help="start from weights so large that a mistake shows in the loss, and drop nothing out",
    )
    flags = parser.parse_args(argv)
    flags.shape, flags.pipeline = dict(flags.shape), tuple(flags.pipeline)
    if flags.loader_threads is None:
        flags.loader_threads = _usual_loader_threads(flags)
    if flags.input != "synthetic" and not flags.data:
        parser.error("--data is needed unless --input is synthetic")
    if flags.no_clip and not clips(recipe):
        parser.error(f"--no-clip: {flags.workload} clips no gradients")
    try:
        recipe.check(flags.shape)
    except ValueError as error:
        parser.error(f"--shape: {error}")
    if flags.memory_limit is not None:
        limit_memory(flags.memory_limit)
    return flags


def _usual_loader_threads(flags):
    if flags.device == "cpu":
        return flags.threads
    # As many with one of a node's GPUs as with all of them: else a loader would bend the speedup. A
    # job may have no more of the CPUs than are its GPUs' share, or fewer.
    share = (os.cpu_count() or 1) // max(1, gpus_of_node(), flags.devices_per_node)
    most = min(MOST_LOADER_THREADS, share, usable_cores() // flags.devices_per_node)
    return max(1, most)


def _pair(text):
    name, value = _named(text)
    return name, int(value)


def _named(text):
    name, _, value = text.partition("=")
    return name, value
