"""PaddleRec on parameter servers, CTR-DNN, Wide & Deep and Word2Vec: the seconds of one trainer.

    2021-02-20 14:40:23,060 - INFO - Epoch: 0, using time 178.241244078 second, ips 15428.2585618 example/sec.

An iteration here is an epoch. Each trainer goes its own way through its share of the samples, in
threads of its own, and prints what it did alone. So do the lines of single batches.

Source: github.com/PaddlePaddle/PaddleRec, tools/static_ps_trainer.py and before; logs in
github.com/PaddlePaddle/Perf at e7a07c4, CtrDnn, WideDeep and Word2Vec. No extractor was published.
"""

from reperf.logs.format import Format

FORMAT = Format(
    name="paddlerec",
    system="paddlepaddle",
    marker=b", using time ",
    pattern=r"\bEpoch: {ITERATION}, using time {NUMBER} second, ips {NUMBER} (?:example|word)/sec\b",
    untimed="its trainers keep their own time, and its lines are those of one of them alone",
    counts_from=0,
    notes={"counting": "0: an iteration is an epoch"},
)
