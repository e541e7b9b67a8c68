"""Programs in PaddlePaddle."""

import re
from collections.abc import Iterator
from functools import partial

from reperf.logs import estimators
from reperf.logs.facts import Fact, Facts
from reperf.logs.format import Format, Prints, Record, facts_by, read_groups

_format = partial(Format, system="paddlepaddle")


def _resnet50_speed(record: Record, facts: Facts) -> float:
    """batch / time"""
    return round(facts.need("global_batch") / estimators.needed(record.duration), 4)


PADDLE1_RESNET50 = _format(
    name="paddle1-resnet50",
    pattern=r"\[Pass {EPOCH}, train batch {ITERATION}\]\s+loss {NUMBER},"
    r"(?: acc\d {NUMBER},){0,2} lr {NUMBER}, elapse {DURATION} sec",
    # Each process prints its arguments; --batch_size is a node's.
    facts=facts_by(node_batch=r"\bbatch_size: (\d{1,9})\s"),
    counts_from=0,
    unit="images/s",
    published=estimators.mean_speed(20, 120, _resnet50_speed),
)
"""PaddleCV 1.8's image classification: rank 0 prints how long each batch took.

    [Pass 0, train batch 20] \\tloss 6.9, acc1 0.0, acc5 0.0, lr 0.00100, elapse 0.3412 sec

Batches count from 0.

Source: github.com/PaddlePaddle/models at release/1.8,
PaddleCV/image_classification/utils/utility.py; DLPerf
PaddlePaddle/resnet50v1.5/extract_paddle_logs.py.
"""

_LINE_OF_BERT = (
    r"(?<!\] )epoch: {EPOCH}, progress: \d{1,9}/\d{1,9}, step: {ITERATION}, loss: {NUMBER}, "
    r"ppl: {NUMBER}, next_sent_acc: {NUMBER}, speed: {RATE} steps/s, file: "
)


def _bert_speed(record: Record, facts: Facts) -> float:
    """steps/s times batch per node"""
    per_step = facts.need("batch_size") * facts.need("devices_per_node")
    return round(estimators.needed(record.rate) * per_step, 4)


PADDLE1_BERT = _format(
    name="paddle1-bert",
    pattern=_LINE_OF_BERT,
    unit="sentences/s",
    published=estimators.mean_speed(20, 120, _bert_speed),
)
"""PaddleNLP 1.8's BERT pretraining: steps/s, without a time stamp.

    epoch: 1, progress: 1/1, step: 60, loss: 10.487363, ppl: 17796.216797, next_sent_acc: 0.560417, speed: 1.060437 steps/s, file: demo_wiki_train.gz

A process has all devices of a node, and steps/s count the steps of all processes together. FleetX
prints the same line but means something else by it: see `fleetx-bert`.

Source: github.com/PaddlePaddle/models at release/1.8,
PaddleNLP/pretrain_language_models/BERT/train.py; DLPerf PaddlePaddle/bert/extract_paddle_logs.py.
"""

FLEETX_BERT = Format(name="fleetx-bert", system="fleetx", pattern=_LINE_OF_BERT, unit="sentences/s")
"""FleetX's collective BERT benchmark: PaddleNLP 1.8's line, with one process per device.

    epoch: 1, progress: 1/1, step: 60, loss: 10.487363, ppl: 17796.216797, next_sent_acc: 0.560417, speed: 1.060437 steps/s, file: demo_wiki_train.gz

Steps/s count the steps of all processes together, so a step is one device's batch; PaddleNLP's is a
node's. Nothing in a log tells the two apart. No method measures these logs.

Source: github.com/PaddlePaddle/FleetX at 918acb2, deprecated/benchmark/collective/bert/train.py.
"""

_ARGUMENTS = facts_by(
    batch_size=r"\bDataLoader\.Train\.sampler\.batch_size=(\d{1,9})\b",
    nodes=r"LAUNCH INFO [^\r\n]{1,30} nnodes: (\d{1,6})\s",
)
# What PaddlePaddle's launcher prints before it starts the ranks.
_DEVICES = re.compile(rb"LAUNCH INFO [^\r\n]{1,30} devices: (\d{1,4}(?:,\d{1,4}){0,1000})\s")


def _launched(head: bytes) -> Iterator[Fact]:
    for match in _DEVICES.finditer(head):
        yield "devices_per_node", match[1].count(b",") + 1
    yield from _ARGUMENTS(head)


PADDLE2_RESNET50 = _format(
    name="paddle2-resnet50",
    marker=b"ips: ",
    pattern=r"\[?{DATE}(?:\] \w{1,20})? INFO: "
    r"(?:\[Train\]\[Epoch |epoch:){EPOCH}(?:/\d{1,9}\]\[Iter: |\s+train step:){ITERATION}\b"
    r"[^\r\n]{0,1000}\bips: {RATE} (?:images|samples)/s(?:ec)?\b",
    facts=_launched,
    rate_times=("world_size",),
    counts_from=0,
    unit="images/s",
)
"""PaddleClas since 2020, static and dynamic graphs, the speed of one device as a running average.

    2021-05-19 16:26:45 INFO: epoch:0   train step:90   top1: 0.0078 top5: 0.0078 loss:  6.9192 lr: 0.100000, batch_cost: 0.09530 s, reader_cost: 0.00771 s, ips: 1343.17002 images/sec.
    [2021/06/07 12:00:01] root INFO: epoch:0   train step:20   loss: 6.9 lr: 0.1 batch_cost: 0.33 s, reader_cost: 0.01 s, ips: 386.35 samples/sec
    [2022/01/02 12:00:01] ppcls INFO: [Train][Epoch 1/120][Iter: 20/5005]lr: 0.1, CELoss: 6.9, batch_cost: 0.33s, reader_cost: 0.01, ips: 386.35 images/sec, eta: 1 day

Steps count from 0. The average leaves out the first five.

Source: github.com/PaddlePaddle/PaddleClas, ppcls/engine/train/utils.py, ppcls/static/program.py
and, of 2020, tools/program.py; logs in github.com/PaddlePaddle/Perf, ResNet50V1.5/logs.
"""

PADDLE2_BERT = _format(
    name="paddle2-bert",
    pattern=r"(?:\[{DATE}\] \[\s*INFO\] - )?"
    r"(?:global step |(?:tobal|total) step: ){ITERATION}, epoch: {EPOCH}, "
    r"batch: \d{1,12}, loss: {NUMBER}, avg_reader_cost: {NUMBER} sec, "
    r"avg_batch_cost: {DURATION} sec, avg_samples: (?:{BATCH_SIZE}(?:\.0{1,9})?|{NUMBER}), ips: {RATE} sequences/sec\b",
    rate_times=("world_size",),
    facts=facts_by(print_every=r"\blogging_steps=(\d{1,9})\b"),
    unit="sentences/s",
    prints=Prints.EVENLY | Prints.BATCHES,
)
"""PaddleNLP 2.x's BERT pretraining: means of one device since the previous line.

    global step 20, epoch: 0, batch: 19, loss: 11.2, avg_reader_cost: 0.00012 sec, avg_batch_cost: 0.21 sec, avg_samples: 32.0, ips: 152.38 sequences/sec
    total step: 20, epoch: 0, batch: 19, loss: 11.2, avg_reader_cost: 0.00007 sec, avg_batch_cost: 0.06548 sec, avg_samples: 96.00000, ips: 1464.41865 sequences/sec

The static graph's script says `tobal step:`, since 2023 `total step:`. A line has a time stamp if a
logger printed it: `[2021-06-07 12:00:01,123] [    INFO] - `. Steps are batches, also where gradients
of several are merged.

Source: github.com/PaddlePaddle/PaddleNLP, examples/language_model/bert/run_pretrain.py and
static/run_pretrain.py; logs in github.com/PaddlePaddle/Perf at e7a07c4, Bert/logs.
"""

PADDLE2_TRANSFORMER = _format(
    name="paddle2-transformer",
    pattern=r"\bstep_idx: {ITERATION}, epoch: \d{1,12}, batch: \d{1,12}, avg loss: {NUMBER}, "
    r"normalized loss: {NUMBER}, ppl: {NUMBER}(?:,|\s)",
    untimed="its batches hold as many sentences as fit, and no line says how many were trained on",
    unit="sentences/s",
)
"""PaddleNLP 2.x's Transformer: the words of one device, and no count of sentences.

    2021-05-08 17:45:47,195-INFO: step_idx: 10, epoch: 0, batch: 10, avg loss: 10.786960, normalized loss: 9.419319, ppl: 48385.699219, avg_speed: 4.44 step/s, batch_cost: 0.22501 sec, reader_cost: 0.00011 sec, tokens: 46643, ips: 20729.05367 words/sec

The steps of all epochs are counted as one row. A batch holds as many sentences as fit into a number
of words.

Source: github.com/PaddlePaddle/PaddleNLP, examples/machine_translation/transformer/train.py; logs
in github.com/PaddlePaddle/Perf at e7a07c4, Transformer/logs.
"""

PADDLESEG = _format(
    name="paddleseg",
    pattern=r"\[TRAIN\] epoch(?:: |=)\d{1,9}, iter(?:: |=){ITERATION}/{TOTAL}, "
    r"loss(?:: |=){NUMBER}, lr(?:: |=){NUMBER}, batch_cost(?:: |=){DURATION}, "
    r"reader_cost(?:: |=){NUMBER}, ips(?:: |=){RATE} samples/sec\b",
    rate_times=("world_size",),
    facts=facts_by(
        # Of the first level: what stands deeper is another.
        batch_size=r"(?:[\r\n]|[>\]\d]: ?)batch_size: (\d{1,9})\s",
        world_size=r"\bGPUs used: (\d{1,9})\s",
    ),
    unit="images/s",
    prints=Prints.EVENLY,
)
"""PaddleSeg: means of one device since the previous line, beside a clock of whole seconds.

    2022-02-05 04:28:53 [INFO]	[TRAIN] epoch: 1, iter: 10/200, loss: 1.6136, lr: 0.009594, batch_cost: 0.7014, reader_cost: 0.00324, ips: 5.7029 samples/sec | ETA 00:02:13

The iterations of all epochs are counted as one row.

Source: github.com/PaddlePaddle/PaddleSeg, paddleseg/core/train.py; logs in
github.com/PaddlePaddle/Perf at e7a07c4, DeepLabV3P/logs and HRNetW18/logs.
"""

_WHOLE = 0.25
"""By how much the product of two printed numbers may be off, at most, that is a whole number."""


def _batch_by_speed(match: re.Match[bytes], rank: tuple[int, ...]) -> Record | None:
    """A record with its batch: the seconds of a batch times the speed, both of four decimals."""
    record = read_groups(PADDLEDETECTION, match, rank)
    if record is None or not record.pace or not record.rate:
        return record
    batch = record.pace * record.rate
    off = 0.6e-4 * (record.pace + record.rate)
    if off > _WHOLE or abs(batch - round(batch)) > off or not round(batch):
        return record
    return record._replace(facts=(("batch_size", round(batch)),))


PADDLEDETECTION = _format(
    name="paddledetection",
    pattern=r"\[{YEARLESS}\] ppdet\.engine(?:\.callbacks)? INFO: Epoch: \[{EPOCH}\] \[ *{ITERATION}/{TOTAL}\] "
    r"learning_rate: {NUMBER} [^\r\n]{0,2000}?\beta: [^\r\n]{1,40}? batch_cost: {PACE} "
    r"data_cost: {NUMBER} ips: {RATE} images/s",
    read=_batch_by_speed,
    evaluates=rb"\] ppdet\.engine(?:\.callbacks)? INFO: Eval iter: ",
    facts=_launched,
    rate_times=("world_size",),
    counts_from=0,
    unit="images/s",
)
"""PaddleDetection since 2021: a clock of whole seconds without a year, and the speed of one device.

    [07/21 14:43:00] ppdet.engine INFO: Epoch: [0] [ 20/200] learning_rate: 0.000025 loss_xy: 7.020596 .. loss: 1037.630493 eta: 10 days, 19:39:33 batch_cost: 6.6231 data_cost: 6.0753 ips: 4.8315 images/s
    [02/04 22:46:24] ppdet.engine.callbacks INFO: Epoch: [0] [2087/7312] learning_rate: 0.000029 loss: 4.504654 .. eta: 67 days, 10:28:48 batch_cost: 0.1664 data_cost: 0.0034 ips: 96.1758 images/s, max_mem_reserved: 42653 MB, max_mem_allocated: 31490 MB

Iterations count from 0, in each epoch. The seconds of a batch are a mean of the newest lines' iterations,
and the speed is the batch of a device over them: so each line says that batch.

Source: github.com/PaddlePaddle/PaddleDetection, ppdet/engine/callbacks.py; lines as in issue 34297 of
PaddlePaddle/Paddle and issue 2884 of PaddlePaddle/PaddleX.
"""

PADDLEREC_BATCHES = _format(
    name="paddlerec-batches",
    pattern=r"(?<!\d){DATE} - INFO - epoch: {EPOCH}, batch_id: {ITERATION}, [^\r\n]{0,1000}?"
    r"avg_reader_cost: {NUMBER} sec, avg_batch_cost: {DURATION} sec, "
    r"avg_samples: (?:{BATCH_SIZE}(?:\.0{1,9})?|{NUMBER}), ips: {RATE} ins/s",
    facts=_launched,
    rate_times=("world_size",),
    counts_from=0,
)
"""PaddleRec's trainers of one device or of several in step: means of one device since the previous line.

    2022-07-28 08:44:26,560 - INFO - epoch: 0, batch_id: 3770, auc:0.768058,  avg_reader_cost: 0.00150 sec, avg_batch_cost: 32.11232 sec, avg_samples: 512.00000, ips: 15.94403 ins/s

Batches count from 0, in each epoch.

Source: github.com/PaddlePaddle/PaddleRec, tools/trainer.py and tools/static_trainer.py; lines as in its
issue 817.
"""

PADDLEREC = _format(
    name="paddlerec",
    pattern=r"\bEpoch: {ITERATION}, using time {NUMBER} second, ips {NUMBER} (?:example|word)/sec\b",
    untimed="its trainers keep their own time, and its lines are those of one of them alone",
    counts_from=0,
)
"""PaddleRec on parameter servers, CTR-DNN, Wide & Deep and Word2Vec: the seconds of one trainer.

    2021-02-20 14:40:23,060 - INFO - Epoch: 0, using time 178.241244078 second, ips 15428.2585618 example/sec.

An iteration here is an epoch. Each trainer goes its own way through its share of the samples, in
threads of its own, and prints what it did alone. Trainers in step print other lines: see
`paddlerec-batches`.

Source: github.com/PaddlePaddle/PaddleRec, tools/static_ps_trainer.py and before; logs in
github.com/PaddlePaddle/Perf at e7a07c4, CtrDnn, WideDeep and Word2Vec.
"""
