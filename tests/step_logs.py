"""Step logs for tests, in the trainers' own form."""

import json


def event(key: str, value: object, **more: object) -> str:
    """One line as steplog.py writes it."""
    fields = {"namespace": "", "time_ms": 0, "event_type": "POINT_IN_TIME", "key": key}
    return ":::MLLOG " + json.dumps({**fields, "value": value, "metadata": {}, **more})


def step(iteration: int, seconds: float, batch: int, rate: float | None = None) -> str:
    """One printed iteration."""
    value = {
        "iteration": iteration,
        "seconds": seconds,
        "samples": iteration * batch,
        "loss": 6.9,
    }
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
