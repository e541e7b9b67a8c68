"""PaddleSeg: means of one device since the previous line, beside a clock of whole seconds.

    2022-02-05 04:28:53 [INFO]	[TRAIN] epoch: 1, iter: 10/200, loss: 1.6136, lr: 0.009594, batch_cost: 0.7014, reader_cost: 0.00324, ips: 5.7029 samples/sec | ETA 00:02:13

The iterations of all epochs are counted as one row.

Source: github.com/PaddlePaddle/PaddleSeg, paddleseg/core/train.py; logs in
github.com/PaddlePaddle/Perf at e7a07c4, DeepLabV3P/logs and HRNetW18/logs. No extractor was
published.
"""

from reperf.logs.averages import durations_since
from reperf.logs.format import Format, Prints, facts_by

FORMAT = Format(
    name="paddleseg",
    system="paddlepaddle",
    marker=b"[TRAIN] epoch",
    pattern=r"\[TRAIN\] epoch(?:: |=)\d{1,9}, iter(?:: |=){ITERATION}/{TOTAL}, "
    r"loss(?:: |=){NUMBER}, lr(?:: |=){NUMBER}, batch_cost(?:: |=){DURATION}, "
    r"reader_cost(?:: |=){NUMBER}, ips(?:: |=){RATE} samples/sec\b",
    remembering=durations_since(),
    rate_times=("world_size",),
    facts=facts_by(
        # Of the first level: what stands deeper is another.
        batch_size=r"(?:[\r\n]|[>\]\d]: ?)batch_size: (\d{1,9})\s",
        world_size=r"\bGPUs used: (\d{1,9})\s",
    ),
    unit="images/s",
    prints=Prints.EVENLY,
    notes={"timing": "the mean time of a batch since the previous line"},
)
