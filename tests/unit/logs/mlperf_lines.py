"""Lines that MLPerf's logger writes, for tests of what logs hold beside their steps."""

import json


def event(key: str, value: object = None, ms: int = 0, **metadata: object) -> str:
    """One line as mlperf_logging writes it."""
    fields = {"namespace": "", "time_ms": ms, "event_type": "POINT_IN_TIME", "key": key}
    return ":::MLLOG " + json.dumps({**fields, "value": value, "metadata": metadata})


def says(**values: object) -> list[str]:
    """A line for each fact, as they stand at the start of a log."""
    return [event(key, value) for key, value in values.items()]


def tracked(step: float, ms: int, rate: float, count: str = "step") -> str:
    """The line of a step, which is named by what it counts."""
    return event("tracked_stats", {"throughput": rate}, ms, **{count: step})


def evaluation(start: int, stop: int) -> list[str]:
    """An evaluation between two milliseconds."""
    return [event("eval_start", ms=start), event("eval_stop", ms=stop)]


def again(ms: int, numbers: range, *events: tuple) -> list[str]:
    """The same events in each period of so many milliseconds.

    Args:
        numbers: of the periods.
        events: the key of each, its milliseconds after its period begins, what its metadata count
            (name -> how much a period, or that and what is counted in period 0), and its value, if
            it has one.
    """

    def counted(number: int, each: float | tuple[float, float]) -> float:
        per, start = each if isinstance(each, tuple) else (each, 0)
        return per * number + start

    return [
        event(
            key,
            *(value or [None]),
            ms * n + at,
            **{name: counted(n, one) for name, one in counts.items()},
        )
        for n in numbers
        for key, at, counts, *value in events
    ]


HEAD = says(global_batch_size=56, train_samples=168)
STOP = event("run_stop", status="success")
ABORTED = "the log says that the run stopped as aborted, without success"
