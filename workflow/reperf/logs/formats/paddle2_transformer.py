"""PaddleNLP 2.x's Transformer: the words of one device, and no count of sentences.

    2021-05-08 17:45:47,195-INFO: step_idx: 10, epoch: 0, batch: 10, avg loss: 10.786960, normalized loss: 9.419319, ppl: 48385.699219, avg_speed: 4.44 step/s, batch_cost: 0.22501 sec, reader_cost: 0.00011 sec, tokens: 46643, ips: 20729.05367 words/sec

The steps of all epochs are counted as one row. A batch holds as many sentences as fit into a number
of words.

Source: github.com/PaddlePaddle/PaddleNLP, examples/machine_translation/transformer/train.py; logs in
github.com/PaddlePaddle/Perf at e7a07c4, Transformer/logs. No extractor was published.
"""

from reperf.logs.format import Format

FORMAT = Format(
    name="paddle2-transformer",
    system="paddlepaddle",
    marker=b"step_idx: ",
    pattern=r"\bstep_idx: {ITERATION}, epoch: \d{1,12}, batch: \d{1,12}, avg loss: {NUMBER}, "
    r"normalized loss: {NUMBER}, ppl: {NUMBER}(?:,|\s)",
    untimed="its batches hold as many sentences as fit, and no line says how many were trained on",
    unit="sentences/s",
)
