"""What every trainer says, in one place: its flags, its step log, its checks.

It needs nothing but the standard library and runs on Python 3.7 and later, in each framework's own
environment.

The step log is MLPerf's logging format: lines that start with `:::MLLOG` and hold one JSON object.
Rank 0 writes it to standard output; the other ranks write a plain line where rank 0 writes a step,
so that whoever watches knows which rank was last heard of.

Where one process trains on several devices it holds a StepLog for each of them.
"""

import argparse
import json
import math
import os
import re
import socket
import sys
import time
import traceback
from contextlib import contextmanager

WORKLOADS = {
    "resnet50": {"title": "ResNet-50 v1.5", "unit": "images", "parameters": 25557032},
    "bert-base": {"title": "BERT-base pretraining", "unit": "sentences", "parameters": None},
}

# A trainer that gives up says why in a line with one of these marks, for the run record.
REFUSAL = ":::REFUSED "
OUT_OF_MEMORY = ":::OOM "

# What frameworks say when memory is full; not all have an exception of their own for it.
_MEMORY_IS_FULL = re.compile(
    "out of memory|not enough memory|(can't|cannot|failed to|when) allocat(e|ing)|allocate failed"
    "|bad_alloc",
    re.IGNORECASE,
)
_COLOUR = re.compile("\x1b\\[[0-9;]*m")  # in OneFlow's messages


class Refused(Exception):
    """The trainer must not go on: what it would measure is not the workload. One line says why."""


def keep_to_own_cores(rank, threads):
    """Keep a CPU rank, its data loader included, to as many cores as it may use threads.

    A device is then the same number of cores whatever the number of ranks, and what a system
    gains from more of them is the work of more devices and not of idle cores. Call it before
    the first thread starts.
    """
    if hasattr(os, "sched_setaffinity"):
        cores = sorted(os.sched_getaffinity(0))
        own = {cores[core % len(cores)] for core in range(rank * threads, (rank + 1) * threads)}
        os.sched_setaffinity(0, own)


def parse_flags(argv=None):
    """Read the flags that all trainers have."""
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--workload", required=True, choices=sorted(WORKLOADS))
    parser.add_argument("--precision", required=True, choices=("fp32", "amp"))
    parser.add_argument("--batch-size", required=True, type=int, help="samples per device")
    parser.add_argument("--iterations", required=True, type=int)
    parser.add_argument("--print-every", required=True, type=int, help="iterations per log line")
    parser.add_argument(
        "--input",
        required=True,
        choices=("tfrecord", "ofrecord", "recordio", "folder", "synthetic"),
    )
    parser.add_argument("--data", help="folder of the record parts or of train/<synset>/*.JPEG")
    parser.add_argument("--image-size", type=int, default=224, help="pixels after the crop")
    parser.add_argument("--device", required=True, choices=("cpu", "cuda"))
    parser.add_argument("--threads", required=True, type=int, help="CPU threads per device")
    parser.add_argument("--seed", required=True, type=int)
    parser.add_argument("--loss-scale", default="none", choices=("none", "static", "dynamic"))
    parser.add_argument("--compile", action="store_true", help="compile the model first")
    parser.add_argument("--dali", action="store_true", help="let NVIDIA DALI read and decode")
    flags = parser.parse_args(argv)
    if flags.input != "synthetic" and not flags.data:
        parser.error("--data is needed unless --input is synthetic")
    return flags


class StepLog:
    """The log of one training run, written by each of its ranks.

    Args:
        flags: what parse_flags returned.
        rank: this process's place among all, from 0.
        world_size: number of processes, each with one device.
    """

    def __init__(self, flags, rank, world_size):
        self.flags = flags
        self.rank = rank
        self.global_batch = flags.batch_size * world_size
        # The wall clock is read once; from here on a clock counts that cannot jump.
        self._wall = time.time() - time.perf_counter()
        self._last = None
        self._say_plainly("started on {}, process {}".format(socket.gethostname(), os.getpid()))
        self._event("init_start", None, "INTERVAL_START")
        self._event("submission_benchmark", flags.workload)
        self._event("global_batch_size", self.global_batch)
        self._event("world_size", world_size)
        self._event("seed", flags.seed)
        self._event("configuration", vars(flags))

    def configured(self, parameters, framework, versions, devices):
        """Say what will train, before the first iteration, and refuse a wrong model.

        Args:
            parameters: number of trainable parameters.
            framework: its name and version, such as "torch 2.13.0".
            versions: library versions, name -> version.
            devices: one device name per rank, or this rank's alone.

        Raises:
            Refused: the model is not the workload's.
        """
        self._event("parameters", parameters)
        self._event("framework", framework)
        self._event("versions", versions)
        self._event("devices", devices)
        expected = WORKLOADS[self.flags.workload]["parameters"]
        if expected is not None and parameters != expected:
            raise Refused(
                "the model has {} parameters, {} has {}".format(
                    parameters, self.flags.workload, expected
                )
            )
        self._event("init_stop", None, "INTERVAL_END")
        self._event("run_start", None, "INTERVAL_START")

    def prints(self, iteration):
        """Whether iteration (from 1) is one that is printed, so the device must be waited for."""
        return iteration % self.flags.print_every == 0

    def step(self, iteration, loss, tokens=None):
        """Log a printed iteration, after the device has finished it.

        Args:
            iteration: from 1.
            loss: this rank's training loss.
            tokens: real tokens that all ranks have seen so far, where samples hold tokens.

        Raises:
            Refused: the loss is not finite.
        """
        seconds = time.perf_counter()
        samples = iteration * self.global_batch
        if not math.isfinite(loss):
            raise Refused("the loss at iteration {} is {}".format(iteration, loss))
        if self.rank != 0:
            self._say_plainly("iteration {}, loss {}".format(iteration, loss))
            return
        value = {"iteration": iteration, "seconds": seconds, "samples": samples, "loss": loss}
        if tokens is not None:
            value["tokens"] = tokens
        if self._last is not None:
            last_seconds, last_samples = self._last
            value["throughput"] = (samples - last_samples) / (seconds - last_seconds)
        self._last = seconds, samples
        self._event("tracked_stats", value, samples_count=samples)

    def finished(self, weight_digests, peak_memory_bytes):
        """Say that all iterations are done, and refuse ranks that have drifted apart.

        Args:
            weight_digests: one digest of the weights per rank.
            peak_memory_bytes: highest device memory in use, one number per rank.

        Raises:
            Refused: the ranks' weights are not equal.
        """
        self._event("weight_digests", weight_digests)
        self._event("peak_memory_bytes", peak_memory_bytes)
        odd = [r for r, digest in enumerate(weight_digests) if digest != weight_digests[0]]
        if odd:
            raise Refused("the weights of rank {} differ from rank 0's at the end".format(odd[0]))
        self._event("run_stop", None, "INTERVAL_END", status="success")
        self._say_plainly("done")

    @contextmanager
    def to_the_end(self):
        """Train within this: the process ends with the block, at once, and says why if not well.

        It leaves without the frameworks' own tidying up, which may wait for ranks that are gone or
        abort (gloo does): a rank that gives up must end, so that its launcher ends the others.
        """
        status = 1
        try:
            yield
            status = 0
        except Refused as error:
            self._write(REFUSAL + "rank {}: {}".format(self.rank, error))
        except Exception as error:
            if isinstance(error, MemoryError) or _MEMORY_IS_FULL.search(str(error)):
                lines = _COLOUR.sub("", str(error)).strip().split("\n")
                # MXNet's messages start with a traceback.
                reason = next(filter(_MEMORY_IS_FULL.search, lines), lines[0]) or "no memory left"
                self._write(OUT_OF_MEMORY + "rank {}: {}".format(self.rank, reason))
            else:
                traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)

    def _event(self, key, value, event_type="POINT_IN_TIME", **metadata):
        if self.rank != 0:
            return
        event = {
            "namespace": "",
            "time_ms": int(1000 * (self._wall + time.perf_counter())),
            "event_type": event_type,
            "key": key,
            "value": value,
            "metadata": dict(metadata, file="steplog.py", lineno=0),
        }
        self._write(":::MLLOG " + json.dumps(event, ensure_ascii=True))

    def _say_plainly(self, text):
        self._write("rank {}: {}".format(self.rank, text))

    @staticmethod
    def _write(line):
        # One write a line: lines of several ranks on one pipe then never mix.
        sys.stdout.flush()
        os.write(1, (line + "\n").encode())
