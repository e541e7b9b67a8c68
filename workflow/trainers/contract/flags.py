"""The flags that tell every trainer what to do."""

import argparse
import os

from trainers.contract.precision import WORDS
from trainers.contract.process import gpus_of_node, limit_memory, usable_cores
from trainers.contract.recipe import clips

MOST_LOADER_THREADS = 16  # more are not started for a device unless they are asked for


def parse_names(argv=None):
    """The flags that name what trains, of which `part` is a dictionary; and the other flags."""
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--recipe", required=True, help="in trainers/recipes: resnet50")
    parser.add_argument("--backend", required=True, help="in trainers/frameworks: torch.backend")
    parser.add_argument("--model", required=True, help="in its folder: resnet50.ResNet50")
    parser.add_argument("--batches", help="what reads data, likewise")
    about = "what else the system brings, likewise"
    parser.add_argument("--part", nargs="*", type=_named, default=[], help=about)
    names, others = parser.parse_known_args(argv)
    names.part = dict(names.part)
    return names, others


def parse_flags(recipe, argv=None):
    """The flags that all trainers have; `shape` is a dictionary, `pipeline` a tuple."""
    parser = argparse.ArgumentParser(allow_abbrev=False)
    add = parser.add_argument
    add("--workload", required=True)
    add("--shape", nargs="*", type=_pair, default=[], help="the workload's, such as image_size=224")
    add("--precision", required=True, choices=WORDS)
    add("--batch-size", required=True, type=int, help="samples per device")
    add("--accumulation", type=int, default=1, help="batches per device in an iteration")
    add("--pipeline", nargs="*", type=int, default=[], help="replicas of each pipeline stage")
    add("--micro-batches", type=int, help="into how many it cuts a batch")
    add("--schedule", help="of a pipeline's micro-batches; left out: as the system has it")
    add("--shard", type=int, help="over how many devices weights are spread")
    add("--tensor", type=int, help="over how many devices each layer is spread")
    add("--iterations", required=True, type=int)
    add("--print-every", required=True, type=int, help="iterations per log line")
    add("--input", required=True, help="a record format, folder or synthetic")
    add("--data", help="folder of what is read")
    add("--device", required=True, choices=("cpu", "cuda"))
    add("--threads", required=True, type=int, help="CPU threads per device")
    add("--loader-threads", type=int, help="that read and decode, of --threads or, on a GPU, more")
    add("--devices-per-node", type=int, default=1, help="among which a node's CPUs are shared")
    add("--memory-limit", type=int, help="bytes of address space that this process may take")
    add("--seed", required=True, type=int)
    add("--dynamic-loss-scale", action="store_true", help="of float16, in place of a fixed one")
    add("--no-clip", action="store_true", help="leave the gradients' norm as it is")
    add("--unpadded", action="store_true", help="compute real tokens alone")
    add("--own-time", action="store_true", help="train and log without waiting for other ranks")
    add("--push-every", type=int, help="iterations after which servers are told what has changed")
    add("--compile", action="store_true", help="compile the model first")
    add("--recompute", choices=("some", "all"), help="features; some: not products and attention")
    add("--rowwise", action="store_true", help="in float8, scale each row by itself")
    add("--dali", action="store_true", help="let NVIDIA DALI read and decode")
    add("--proof", action="store_true", help="weights so large that mistakes show, and no dropout")
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
    """On a CPU as many as train; on a GPU the CPUs of the node over its GPUs, up to a number."""
    if flags.device == "cpu":
        return flags.threads
    # As many with one of a node's GPUs as with all of them: else a loader would bend the speedup. A
    # job may have no more of the CPUs than are its GPUs' share, or fewer.
    share = (os.cpu_count() or 1) // max(1, gpus_of_node(), flags.devices_per_node)
    most = min(MOST_LOADER_THREADS, share, usable_cores() // flags.devices_per_node)
    return max(1, most)


def _named(text):
    name, _, value = text.partition("=")
    return name, value


def _pair(text):
    return _named(text)[0], int(_named(text)[1])
