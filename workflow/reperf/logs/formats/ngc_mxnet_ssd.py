"""NVIDIA's MXNet SSD of MLPerf: the mean time of the iterations since the previous line.

    [Training][Iteration 500][Epoch 4, Batch 107/131] lr: 0.06881, training time: 110.682 [ms], speed: 8095.284 [imgs/sec], loss=6.214

The mean begins again with each epoch, so that the iterations after an epoch's last line are in none;
those of all epochs are counted as one row. Each line is printed twice, by two handlers.

Source: github.com/mlcommons/training_results_v0.7 at 0a8a85a,
NVIDIA/benchmarks/ssd/implementations/mxnet/model.py. No extractor was published.
"""

import re
from collections import defaultdict

from reperf.logs.averages import Spans
from reperf.logs.format import Format, Prints, Read, Record, batches_of


def _remembering(_format: Format) -> Read:
    spans: defaultdict[tuple[int, ...], Spans] = defaultdict(Spans)

    def read(match: re.Match[bytes], rank: tuple[int, ...]) -> Record | None:
        iteration, batch = int(match["iteration"]), int(match["batch"])
        since = spans[rank].of(iteration)
        # Of the first line a mean tells the time of the last iteration, at least.
        span = min(batch, 1 if since is None else since)
        return Record(
            iteration=iteration,
            rank=rank,
            duration=float(match["duration"]) * span / 1000,
            span=span,
            tick=span * 1e-6,
            rate=float(match["rate"]),
            text=match[0],
            batch=batches_of(match),
        )

    return read


FORMAT = Format(
    name="ngc-mxnet-ssd",
    system="ngc-mxnet",
    marker=b"[Training][Iteration ",
    pattern=r"\[Training\]\[Iteration {ITERATION}\]\[Epoch {TURN}, Batch {BATCH}/{BATCHES}\] "
    r"lr: {NUMBER}, training time: {DURATION} \[ms\], speed: {RATE} \[imgs/sec\], "
    r"\w{1,40}={NUMBER}",
    remembering=_remembering,
    unit="images/s",
    prints=Prints.EVENLY,
    notes={
        "timing": "the mean time of an iteration since the previous line, or since the epoch began"
    },
)
