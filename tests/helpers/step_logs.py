"""Step logs for tests, in the trainers' own form."""

import json
import random
import re


def event(key: str, value: object, **more: object) -> str:
    """One line as steplog.py writes it."""
    fields = {"namespace": "", "time_ms": 0, "event_type": "POINT_IN_TIME", "key": key}
    return ":::MLLOG " + json.dumps({**fields, "value": value, "metadata": {}, **more})


def step(iteration: int, seconds: float, batch: int, rate: float | None = None) -> str:
    """One printed iteration."""
    value = {"iteration": iteration, "seconds": seconds, "samples": iteration * batch, "loss": 6.9}
    if rate is not None:
        value["throughput"] = rate
    return event("tracked_stats", value)


def step_log(
    *, batch: int = 16, world: int = 2, iterations: int = 120, every: int = 20, rate: float = 100.0
) -> list[str]:
    """The lines of a whole log at a steady rate, in samples/s; the first step takes 3 s more."""
    lines = [
        "rank 0: started on node1, process 7",
        event("submission_benchmark", "resnet50"),
        event("global_batch_size", batch),
        event("world_size", world),
        event("parameters", 25557032),
        event("run_start", None),
    ]
    for iteration in range(every, iterations + 1, every):
        seconds = 1000 + 3 + iteration * batch / rate
        printed = None if iteration == every else rate
        lines.append(step(iteration, seconds, batch, printed))
        lines.append(f"rank 1: iteration {iteration}")
    return [*lines, event("run_stop", None, metadata={"status": "success"}), "rank 0: done"]


BOOTED = 1_767_322_000
"""The Unix time at which the step clock of a planned log was 0."""


def planned_log(
    *, iterations: int = 120, every: int = 20, batch: int = 16, world: int = 2, rate: float = 100.0
) -> list[str]:
    """The lines of a whole log that says its plan and tells both clocks.

    No two steps take as long; `rate` is about their speed.
    """
    chance, seconds = random.Random(1), 1000.0
    steady = step_log(batch=batch, world=world, iterations=iterations, every=every, rate=rate)
    plan = {"workload": "resnet50", "iterations": iterations, "print_every": every}
    lines = [steady[0], event("configuration", plan)]
    for line in steady[1:]:
        if found := re.search(r'"iteration": (\d+)', line):
            took = every * batch / rate * (0.8 + 0.4 * chance.random())
            seconds += took
            printed = None if int(found[1]) == every else every * batch / took
            lines.append(stamped(step(int(found[1]), seconds, batch, printed), seconds))
        else:
            lines.append(stamped(line, seconds))
    return lines


def stamped(line: str, seconds: float) -> str:
    """A line as it is written at a time of the step clock."""
    return line.replace('"time_ms": 0', f'"time_ms": {int(1000 * (BOOTED + seconds))}')
