"""PaddleNLP 2.x's BERT pretraining: the speed of one device, averaged since the previous line.

    global step 20, epoch: 0, batch: 19, loss: 11.2, avg_reader_cost: 0.00012 sec, avg_batch_cost: 0.21 sec, avg_samples: 32.0, ips: 152.38 sequences/sec

A line has a time stamp if a logger printed it: `[2021-06-07 12:00:01,123] [    INFO] - `.

Source: github.com/PaddlePaddle/PaddleNLP, examples/language_model/bert/run_pretrain.py. No
extractor was published.
"""

from reperf.logs.clock import DATE
from reperf.logs.format import EPOCH, ITERATION, NUMBER, RATE, Format, line, time_by

FORMAT = Format(
    name="paddle2-bert",
    system="paddlepaddle",
    marker=b"global step ",
    pattern=line(
        rf"(?:\[{time_by(DATE)}\] \[\s*INFO\] - )?global step {ITERATION}, epoch: {EPOCH}, "
        rf"batch: \d{{1,12}}, loss: {NUMBER}, avg_reader_cost: {NUMBER} sec, "
        rf"avg_batch_cost: {NUMBER} sec, avg_samples: {NUMBER}, ips: {RATE} sequences/sec\b"
    ),
    clock=DATE,
    rate_times=("world_size",),
    unit="sentences/s",
)
