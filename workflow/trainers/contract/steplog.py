"""What every trainer says: its step log, and what it checks before saying so.

The step log is in MLPerf's logging format: lines that start with `:::MLLOG` and hold one JSON
object. Rank 0 writes it; the others write a plain line for each step, which shows who was last
heard from. Ranks that keep their own time (`--own-time`) each write a step log of what they
themselves have trained, whose lines name the rank.
"""

import json
import math
import os
import re
import socket
import sys
import time
import traceback
from contextlib import contextmanager

from trainers.contract import settings
from trainers.contract.recipe import dropout_of
from trainers.contract.recipe import parameters as parameters_of
from trainers.contract.stages import name_of, readers_of
from trainers.contract.waiting import Pulse

# A trainer that gives up says why in a line with one of these marks; the run record quotes it.
REFUSAL = ":::REFUSED "
OUT_OF_MEMORY = ":::OOM "

# What frameworks say when memory is full; not all have an exception for it.
_MEMORY_IS_FULL = re.compile(
    "out of memory|not enough memory|(can't|cannot|failed to|unable to|when) allocat(e|ing)"
    "|allocate failed"
    # What cuDNN and cuBLAS say, by way of torch and TensorFlow.
    "|bad_alloc|alloc_failed|no algorithm worked|unable to find an engine",
    re.IGNORECASE,
)
_COLOUR = re.compile("\x1b\\[[0-9;]*m")  # in OneFlow's messages


def printed_iterations(iterations, print_every):
    """The iterations that a run logs: the multiples of print_every, as a range."""
    return range(print_every, iterations + 1, print_every)


class Refused(Exception):
    """The trainer must stop: it would not measure the workload. One line says why."""


class StepLog:
    def __init__(self, recipe, flags, rank, world_size):
        self.flags = flags
        self.rank = rank
        # A rank that keeps its own time makes its own steps.
        readers = 1 if flags.own_time else readers_of(flags, world_size)
        self.global_batch = flags.batch_size * readers * flags.accumulation
        self.who = name_of(rank, flags.pipeline)
        self._pulse = None
        self._expected = parameters_of(recipe, flags.shape)
        self.names = list(recipe.weight_shapes(flags.shape))
        # Where nothing drops out and all systems get the same batch, its loss is asked for, too.
        same = flags.input == "synthetic" and not flags.proof
        self._asks_for_first = same and not dropout_of(recipe, flags)
        # Read once: from here on, time comes from a clock that cannot jump.
        self._wall = time.time() - time.perf_counter()
        self._last = None
        # A rank that keeps its own time trains on until the last has come as far.
        printed = sys.maxsize if flags.own_time else flags.iterations
        self._printed = printed_iterations(printed, flags.print_every)
        self._say_plainly(f"started on {socket.gethostname()}, process {os.getpid()}")
        self._event("init_start", None, "INTERVAL_START")
        self._events(
            submission_benchmark=flags.workload,
            global_batch_size=self.global_batch,
            world_size=world_size,
            seed=flags.seed,
            configuration=vars(flags),
        )

    def configured(self, parameters, framework, versions, devices, precision):
        """Say what will train, before the first iteration, and refuse a wrong model."""
        types = dict(precision._asdict(), weights="float32")
        self._events(parameters=parameters, framework=framework, versions=versions)
        self._events(settings=settings.RECORDED, devices=devices, precision=types)
        if parameters != self._expected:
            raise Refused(
                f"the model has {parameters} parameters, {self.flags.workload} has {self._expected}"
            )
        self._event("init_stop", None, "INTERVAL_END")
        self._event("run_start", None, "INTERVAL_START")

    def without_dropout(self, loss):
        """Say what the first batch's loss is, nothing dropped out, before it is trained on."""
        # What drops out is each framework's own draw: this loss frameworks have in common.
        if not math.isfinite(loss):
            raise Refused(f"the first loss, without dropout, is {loss}")
        self._event("loss_without_dropout", loss)

    def prints(self, iteration):
        """Whether iteration (from 1) is printed, so that the device must finish it first."""
        first = iteration == 1 and self._asks_for_first
        return first or iteration in self._printed

    def step(self, iteration, loss, waited, **counts):
        """Log a printed iteration, after the device has finished it; of the first its loss, too.

        Only rank 0 must have a loss of its own. `waited` are the seconds for batches so far, and
        `counts` what else all ranks together have trained on so far, such as tokens=4096.
        """
        seconds = time.perf_counter()
        samples = iteration * self.global_batch
        if loss is not None and not math.isfinite(loss):
            raise Refused(f"the loss at iteration {iteration} is {loss}")
        if iteration == 1 and self._asks_for_first:
            if loss is not None:
                self.without_dropout(loss)
            if iteration not in self._printed:
                return
        if not self._speaks:
            said = [f"iteration {iteration}"] + ([] if loss is None else [f"loss {loss}"])
            said += [f"waited {waited:.6f} s"] if waited else []
            self._say_plainly(", ".join(said))
            return
        value = {"iteration": iteration, "seconds": seconds, "samples": samples, "loss": loss}
        if waited is not None:
            value["waited"] = waited
        value.update(counts)
        if self._last is not None:
            last_seconds, last_samples = self._last
            value["throughput"] = (samples - last_samples) / (seconds - last_seconds)
        self._last = seconds, samples
        self._event("tracked_stats", value, samples_count=samples)

    def ranks(self, told):
        """Log the time that each rank takes by itself, which shows the one they all wait for."""
        alone, waited = map(_short, zip(*told))
        self._events(rank_seconds_alone=alone, rank_seconds_waited=waited)

    def finished(self, ends, peak_memory_bytes, weight_changes=None, **known):
        """Say that all iterations are done, and refuse ranks that have drifted apart.

        `ends` are each rank's part of the model, and its weights' digest; weight changes are of a
        proof, in the recipe's order. What is `known` is said, unless it is None.
        """
        known["weight_changes"] = None if weight_changes is None else _short(weight_changes)
        self._events(weight_digests=[digest for _, digest in ends])
        self._events(peak_memory_bytes=peak_memory_bytes)
        self._events(**{key: value for key, value in known.items() if value is not None})
        first = {}
        # Of those that keep their own time none has the last of the others' updates.
        for rank, (part, digest) in enumerate([] if self.flags.own_time else ends):
            holder, expected = first.setdefault(part, (rank, digest))
            if digest != expected:
                who, other = (name_of(one, self.flags.pipeline) for one in (rank, holder))
                raise Refused(f"the weights of {who} differ from {other}'s at the end")
        self._event("run_stop", None, "INTERVAL_END", status="success")
        self._say_plainly("done")

    @contextmanager
    def to_the_end(self):
        """Train inside this block: the process ends with it, at once, and says why if it failed."""
        # Frameworks' own clean-up may abort, or wait for ranks that are gone, as gloo does; a rank
        # that gives up must end, so that its launcher ends the others.
        status, self._pulse = 1, Pulse(self.who)
        try:
            yield
            status = 0
        except Refused as error:
            self._write(REFUSAL + f"{self.who}: {error}")
        except Exception as error:
            if isinstance(error, MemoryError) or _MEMORY_IS_FULL.search(str(error)):
                lines = _COLOUR.sub("", str(error)).strip().split("\n")
                # MXNet's messages start with a traceback.
                reason = next(filter(_MEMORY_IS_FULL.search, lines), lines[0]) or "no memory left"
                self._write(OUT_OF_MEMORY + f"{self.who}: {reason}")
            else:
                traceback.print_exc()
        finally:
            self._pulse.stop()
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)

    @property
    def _speaks(self):
        return self.rank == 0 or self.flags.own_time

    def _events(self, **values):
        for key, value in values.items():
            self._event(key, value)

    def _event(self, key, value, event_type="POINT_IN_TIME", **metadata):
        if not self._speaks:
            return
        if self.flags.own_time:
            metadata["rank"] = self.rank
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
        self._write(f"{self.who}: {text}")

    def _write(self, line):
        if self._pulse is not None:
            self._pulse.heard()
        # One write per line, so that lines of several ranks on one pipe never mix.
        sys.stdout.flush()
        os.write(1, (line + "\n").encode())


def _short(numbers):
    """Numbers of six digits, for a pipe takes 4096 bytes in one piece."""
    return [None if one is None else float("%.6g" % one) for one in numbers]
