"""Programs in MXNet: gluon-cv, gluon-nlp, and NVIDIA's."""

import re
from collections.abc import Iterator
from functools import partial

from reperf.logs import estimators
from reperf.logs.clock import DATE
from reperf.logs.events import MARK
from reperf.logs.facts import Fact, Facts
from reperf.logs.format import Format, Prints, Record, durations_since, facts_by

_mxnet, _ngc_mxnet = (partial(Format, system=system) for system in ("mxnet", "ngc-mxnet"))

MXNET_RESNET50 = _mxnet(
    name="mxnet-resnet50",
    pattern=r"Epoch\[{EPOCH}\] Batch\[{ITERATION}\]\s+Speed: {RATE} samples/sec",
    facts=facts_by(
        batch_size=r"\bNamespace\(.*\bbatch_size=(\d{1,9})\b",
        world_size=r"mpirun .*-np (\d{1,9})\s",
    ),
    counts_from=0,
    unit="images/s",
    published=estimators.mean_speed(20, 120, estimators.printed_speed(2), exactly=True),
)
"""MXNet's gluon-cv ResNet-50, printed by rank 0 without a time stamp, batches from 0.

    INFO:root:Epoch[0] Batch[1]\\tSpeed: 391.204510 samples/sec\\taccuracy=0.000000\\tlr=0.001000

Source: github.com/dmlc/gluon-cv at f9a8a284, scripts/classification/imagenet/train_horovod.py as
DLPerf changed it; DLPerf MxNet/Classification/RN50v1b/extract_mxnet_logs.py.
"""


def _speed(record: Record, facts: Facts) -> float:
    latency = round(estimators.needed(record.duration) * 1000, 1)
    return 1000.0 / estimators.needed(latency) * facts.need("global_batch")


MXNET_BERT = _mxnet(
    name="mxnet-bert",
    pattern=r"\[step {ITERATION}\]\s+(?:\w{1,20}=\s*{NUMBER}\s+){2,4}throughput={NUMBER} tks/s\s+"
    r"lr={NUMBER} time={NUMBER}, latency={MILLISECONDS} ms/batch",
    facts=facts_by(
        global_batch=r"\btotal_batch_size=(\d{1,9})\b", world_size=r"mpirun .*-np (\d{1,9})\s"
    ),
    unit="sentences/s",
    published=estimators.mean_of_rank_medians(100, 200, _speed),
)
"""MXNet's gluon-nlp BERT pretraining: every rank prints how long its batch took.

    [step 120]\\tmlm_loss=9.12345\\tnsp_loss= 0.69\\tthroughput=83.2K tks/s\\tlr=0.0000100 time=0.20, latency=196.9 ms/batch

Each line is taken for one batch, as with log_interval 1; if batches are missing between lines, the
window rule refuses the log.

Source: github.com/dmlc/gluon-nlp at 7b7bf602, scripts/bert/pretraining_utils.py; DLPerf
MxNet/BERT/extract_mxnet_logs.py.
"""

GLUONCV = _mxnet(
    name="gluoncv",
    signs=(b"]/[", b"][Batch "),
    pattern=r"(?:{DATE} - [^\s]{1,100} - INFO: )?(?=Epoch\[\d{1,12}\] Batch \[\d{1,12}\]/|\[Epoch \d{1,12}\]\[Batch )"
    r"\[?Epoch[\[ ]{EPOCH}\] ?\[?Batch \[?{ITERATION}\](?:/\[\d{1,12}\]|,)\s+"
    r"(?:LR: {NUMBER}, )?Speed: {RATE} samples/sec",
    facts=facts_by(
        global_batch=r"\bTotal batch size is set to (\d{1,9}) on \d{1,9} GPUs",
        world_size=r"\bTotal batch size is set to \d{1,9} on (\d{1,9}) GPUs",
    ),
    counts_from=0,
    unit="images/s",
)
"""gluon-cv's scripts of detection and action recognition: speeds, and times where a logger stamps them.

    Epoch[034] Batch [0039]/[0056]\tSpeed: 110.684949 samples/sec\t accuracy=88.867188\t loss=0.371839\t lr=0.000100
    [Epoch 25][Batch 14599], Speed: 6.891 samples/sec, RPN_Conf=0.021,RPN_SmoothL1=0.023,..
    [Epoch 0][Batch 99], LR: 9.59E-05, Speed: 148.642 samples/sec, ObjLoss=429.711,..
    2020-08-31 15:27:34,380 - train_net.py[line:175] - INFO: [Epoch 14][Batch 50], Speed: ..

The third is YOLO's. The seconds that follow an epoch are those of its validation, too. gluon-cv's
classification prints MXNet's own lines, those of `ngc-mxnet-resnet50`.

Source: github.com/dmlc/gluon-cv, scripts/classification/imagenet/train_imagenet.py and its like;
logs in github.com/dmlc/web-data at 0818ee5, gluoncv/logs.
"""

# One process on one machine; of several, the arguments do not say how many there are.
_NAMESPACE = re.compile(
    rb"Namespace\(accumulate=(\d{1,9}), batch_size=(\d{1,9}),"
    rb".{0,2000}\bgpus='([\d,]{1,200})', kvstore='(?:device|local)\w{0,20}'"
)
_INTERVAL = facts_by(print_every=r"Namespace\(accumulate=.{0,2000}\blog_interval=(\d{1,9})\b")


def _gluonnlp_arguments(head: bytes) -> Iterator[Fact]:
    for accumulate, batch, devices in _NAMESPACE.findall(head):
        yield "accumulation", int(accumulate) or None
        yield "batch_size", int(batch) or None
        yield "world_size", len(devices.split(b","))
    yield from _INTERVAL(head)


GLUONNLP_BERT = _mxnet(
    name="gluonnlp-bert",
    pattern=r"\[step {ITERATION}\]\s+(?:\w{1,20}=\s*{NUMBER}\s+){2,4}throughput={NUMBER} tks/s\s+"
    r"lr={NUMBER} time={DURATION}(?=\s)",
    remembering=durations_since(of_all=True, before=1),
    facts=_gluonnlp_arguments,
    counts_from=0,  # as its counter starts; the first step is 1
    unit="sentences/s",
    prints=Prints.EVENLY | Prints.STEPS,
)
"""gluon-nlp's BERT pretraining of 2019: the seconds since the previous line.

    INFO:root:[step 499]	mlm_loss=8.19401	mlm_acc=6.20519	nsp_loss=0.68434	nsp_acc=55.795	throughput=124.0K tks/s	lr=0.0000050 time=108.43

It prints one step before each multiple of the interval. A step of the optimizer holds `accumulate`
batches of each device. Later versions print the latency of a batch, too: see `mxnet-bert`.

Source: github.com/dmlc/gluon-nlp at 1251d05, scripts/bert/run_pretraining.py; log in
github.com/dmlc/web-data at 0818ee5, gluonnlp/logs/bert/bert_base_pretrain.log.
"""

_ARGUMENTS = facts_by(
    global_batch=(r"--batch-size[ =](\d{1,9})\s", r"\bNamespace\(.*\bbatch_size=(\d{1,9})\b"),
    world_size=r"horovodrun .*-np (\d{1,9})\s",
)


def _arguments(head: bytes) -> Iterator[Fact]:
    """The arguments, whose batch is that of all ranks, but in MLPerf's version that of one."""
    of_rank = b" Node[" in head or MARK in head
    for name, value in _ARGUMENTS(head):
        yield "batch_size" if of_rank and name == "global_batch" else name, value


NGC_MXNET_RESNET50 = _ngc_mxnet(
    name="ngc-mxnet-resnet50",
    pattern=r"(?:\[?{DATE}(?::INFO:|\]| Node\[{RANK}\]) )?Epoch\[{EPOCH}\] Batch \[(?:\d{1,12}-)?{ITERATION}\]\s+"
    r"Speed: {RATE} samples/sec",
    facts=_arguments,
    counts_from=0,
    unit="images/s",
    published=estimators.between_lines(20, 120, DATE, of_all_ranks=True),
)
"""NVIDIA's MXNet ResNet-50: MXNet's Speedometer over a range of batches.

    [1,0]<stderr>:2020-12-16 08:03:32,459:INFO: Epoch[0] Batch [240-259]\\tSpeed: 388.77939683427064 samples/sec\\tLR: 0.0148
    2020-07-10 18:52:44,594 Node[0] Epoch[0] Batch [0-20]\\tSpeed: 20461.75 samples/sec\\taccuracy=0.001284
    [2020-06-22 19:16:26] Epoch[0] Batch [0-50]\\tSpeed: 788.08 samples/sec\\taccuracy=0.001225

The first is DeepLearningExamples', where every rank prints; the others are of MLPerf submissions, the
last one Intel's. Older versions of MXNet print the end of the range alone. Batches count from 0, and
the speed is that of all ranks.

Source: github.com/NVIDIA/DeepLearningExamples at e470c215, MxNet/Classification/RN50v1.5/fit.py;
github.com/mlcommons/training_results_v0.7 at c6640611, results of Alibaba and Intel;
github.com/apache/mxnet, python/mxnet/callback.py; DLPerf
NVIDIADeepLearningExamples/MxNet/Classification/RN50v1.5/extract_mxnet_logs_time.py, whose results
its README shows.
"""

NGC_MXNET_CLASSIFICATION = _ngc_mxnet(
    name="ngc-mxnet-classification",
    marker=b" train.ips : ",
    pattern=r"DLL {DATE} - Epoch: {EPOCH} Iteration: {ITERATION}  train.loss : {NUMBER}\s+"
    r"train.ips : {RATE}{END}",
    # kv_store is an argument of the MXNet script alone.
    facts=facts_by(global_batch=r"PARAMETER .* kv_store : .* batch_size : (\d{1,9})\s"),
    counts_from=0,
    unit="images/s",
)
"""NVIDIA DeepLearningExamples' MXNet image classification since 2021, through DLLogger.

    DLL 2021-12-17 10:38:27.688385 - Epoch: 0 Iteration: 39  train.loss : 7.077772760391236  train.ips : 384.7673874257311  train.lr : 0.002241916167664671

Since 2023 `images/s` follows the speed. Rank 0 prints it, the speed of all ranks since its previous
line. Batches count from 0, and the argument is the batch of all ranks.

Source: github.com/NVIDIA/DeepLearningExamples, MxNet/Classification/RN50v1.5/fit.py and
log_utils.py; logs in github.com/PaddlePaddle/Perf at e7a07c4, ResNet50V1.5/OtherReports/MxNet/logs.
"""


NGC_MXNET_SSD = _ngc_mxnet(
    name="ngc-mxnet-ssd",
    pattern=r"\[Training\]\[Iteration {ITERATION}\]\[Epoch {TURN}, Batch {BATCH}/{BATCHES}\] "
    r"lr: {NUMBER}, training time: {MILLISECONDS} \[ms\], speed: {RATE} \[imgs/sec\], "
    r"\w{1,40}={NUMBER}",
    remembering=durations_since(within_epochs=True),
    unit="images/s",
    prints=Prints.EVENLY,
)
"""NVIDIA's MXNet SSD of MLPerf: the mean time of the iterations since the previous line.

    [Training][Iteration 500][Epoch 4, Batch 107/131] lr: 0.06881, training time: 110.682 [ms], speed: 8095.284 [imgs/sec], loss=6.214

The mean begins again with each epoch, so that the iterations after an epoch's last line are in none;
those of all epochs are counted as one row. Each line is printed twice, by two handlers.

Source: github.com/mlcommons/training_results_v0.7 at 0a8a85a,
NVIDIA/benchmarks/ssd/implementations/mxnet/model.py.
"""
