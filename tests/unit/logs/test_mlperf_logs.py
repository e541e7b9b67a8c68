"""What MLPerf's own logs say of batches, epochs, evaluations and their end."""

import json

import pytest
from asking import measure_one

STOP = ("run_stop", None, {"status": "success"})


def event(key: str, value: object = None, metadata: dict | None = None, *, ms: int = 0) -> str:
    """One line as mlperf_logging writes it."""
    fields = {"namespace": "", "time_ms": ms, "event_type": "POINT_IN_TIME", "key": key}
    return ":::MLLOG " + json.dumps({**fields, "value": value, "metadata": metadata or {}})


class TestTheEpochsOfUnet3d:
    """A batch of 16 pads an epoch of 168 samples to 176: 11 batches of 0.5 s each."""

    def lines(self, *, trained: int | None, rate: float = 32.0, took: float = 5.5) -> list[str]:
        said = [] if trained is None else [event("samples_per_epoch", trained)]
        stats = [
            event("tracked_stats", {"throughput": rate}, {"epoch_num": n}, ms=int(1000 * took * n))
            for n in range(20, 161, 20)
        ]
        head = [event("global_batch_size", 16), event("train_samples", 168)]
        return [*head, *said, *stats, event(*STOP)]

    def test_the_nearest_size_is_meant(self):
        measured = measure_one(self.lines(trained=None))
        assert (measured.samples, measured.throughput) == (17600, 32.0)

    def test_what_the_log_says_an_epoch_trains_rules(self):
        measured = measure_one(self.lines(trained=176, rate=31.0))
        assert (measured.samples, measured.throughput) == (17600, 32.0)
        assert measured.sources["epoch_trained"] == "the log"

    def test_speeds_that_deny_what_the_log_says_are_refused(self):
        measured = measure_one(self.lines(trained=192))
        assert measured.reason == (
            "the printed speeds mean 176 samples a step, the global batch is 16: a step of this "
            "log is neither a batch nor a sample, nor an epoch of 192 samples"
        )

    @pytest.mark.parametrize("rate", [31.0, 31.3, 31.6])
    def test_a_speed_between_two_sizes_decides_nothing(self, rate):
        measured = measure_one(self.lines(trained=None, rate=rate))
        assert measured.reason == (
            f"the printed speeds mean {rate * 5.5:.6g} samples a step, and nothing says which size "
            f"it has: {'168 or 176' if rate * 5.5 < 171.9 else '176 or 168'}"
        )
