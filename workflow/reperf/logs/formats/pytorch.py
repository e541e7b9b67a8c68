"""Programs in PyTorch, not NVIDIA's, that train on images or clicks."""

import re
from collections.abc import Iterator, Sequence

from reperf.logs import estimators
from reperf.logs.facts import Fact, Facts
from reperf.logs.format import (
    Estimate,
    Format,
    Prints,
    Read,
    Record,
    durations_since,
    facts_by,
    read_groups,
)

_SKIPPED, _FIRST, _LAST = 5, 20, 120


def _mean_time(records: Sequence[Record], facts: Facts) -> Estimate:
    """mean time of lines 21 to 120 after batch 5, of any ranks, with one digit before the point

    The extractor's expression keeps no other: 12.054 counts as 2.054.
    """
    lines = [record for record in records if record.iteration > _SKIPPED][:_LAST]
    estimators.enough(lines, _LAST)
    batch = facts.need("global_batch")
    seconds = sum(round(estimators.needed(record.duration) % 10, 3) for record in lines[_FIRST:])
    steps = _LAST - _FIRST
    speed = round(float(batch / (estimators.needed(seconds) / steps)), 2)
    return Estimate(speed, lines[_FIRST - 1].iteration, lines[-1].iteration, batch * steps, seconds)


PYTORCH_RESNET50 = Format(
    name="pytorch-resnet50",
    system="pytorch",
    pattern=r"Epoch: \[{EPOCH}\]\[\s*{ITERATION}/{TOTAL}\]\s+Time\s+{DURATION} \(\s*{NUMBER}\)\s+"
    r"Data\s+{NUMBER} \(\s*{NUMBER}\)\s+Loss {NUMBER} ",
    # --batch-size is a node's, --world-size the number of nodes.
    facts=facts_by(
        node_batch=r"main\.py .*--batch-size[ =](\d{1,9})\s",
        nodes=r"main\.py .*--world-size[ =](\d{1,9})\s",
        workload=r"=> (?:creating|using pre-trained) model '(\w{1,40})'",
    ),
    counts_from=0,
    unit="images/s",
    published=_mean_time,
)
"""PyTorch's ImageNet example: every rank prints, with neither label nor time stamp.

    Epoch: [0][ 5/53]\\tTime  0.360 ( 2.410)\\tData  0.108 ( 0.072)\\tLoss 2.0644e+01 (1.9712e+01)\\t..

Batches count from 0; the time in parentheses is their mean so far, and is not read. If several ranks
print into one log, the window rule refuses it.

Source: github.com/pytorch/examples at 49ec0bd, imagenet/main.py; DLPerf
PyTorch/resnet50v1.5/extract_pytorch_logs_time.py.
"""

TORCHVISION = Format(
    name="torchvision",
    # What is between is of this iteration: a line that broke off may go on with another one's.
    pattern=r"Epoch: \[{EPOCH}\]  \[ *{ITERATION}/{TOTAL}\]  eta: "
    r"(?:(?!Epoch: )[^\r\n]){1,1000}?  time: {DURATION}  data: {NUMBER}",
    remembering=durations_since(newest=20),
    untimed="its times are means of 20 iterations, and a line is printed for another number of them",
    counts_from=0,
    precedence=2,
    unit="images/s",
)
"""torchvision's reference scripts, as in MLPerf's SSD: the mean time of the newest 20 iterations.

    Epoch: [4]  [  80/9143]  eta: 0:29:38  lr: 0.000100  time: 0.1946  data: 0.0269  max mem: 10522

Iterations count from 0, and the line of each follows it. Where one is printed every 20, the
means cover all of an epoch; of other intervals they do not.

Source: github.com/pytorch/vision, references/detection/utils.py; logs in
github.com/mlcommons/training_results_v2.0, benchmark ssd.
"""

_ARGUMENTS = facts_by(
    world_size=r"Rank of current process: \d{1,9}\. World size: (\d{1,9})\s",
    global_batch=r"\bIMS_PER_BATCH: (\d{1,9})\s",
)
_SCALES = b"Auto-scaling the config to batch_size="


def _unless_scaled(head: bytes) -> Iterator[Fact]:
    scaled = _SCALES in head
    return (fact for fact in _ARGUMENTS(head) if not scaled or fact[0] != "global_batch")


DETECTRON2 = Format(
    name="detectron2",
    marker=b".utils.events",
    pattern=r"\[{YEARLESS}(?:\] (?:d2|detectron2)\.utils\.events INFO"
    r"| (?:d2|detectron2)\.utils\.events\]): +(?:eta: [^\r\n]{1,40}? +)?"
    r"iter: {ITERATION}  [^\r\n]{0,4000}?(?:(?<!_)\btime: {PACE} [^\r\n]{0,400}?)?\blr: {NUMBER}{END}",
    evaluates=rb": Start inference on \d",
    facts=_unless_scaled,
    counts_from=0,
    unit="images/s",
)
"""Facebook's Detectron2: a clock of whole seconds without a year, and iterations from 0.

    [06/11 13:51:41 d2.utils.events]:  eta: 0:05:22  iter: 19  total_loss: 1.986  loss_cls: 0.595  .. time: 1.1678  data_time: 0.0222  lr: 1.6068e-05  max_mem: 2725M
    [06/11 13:51:41] d2.utils.events INFO:  eta: 0:05:22  iter: 19  total_loss: 1.986  loss_cls: 0.595  .. time: 1.1678  data_time: 0.0222  lr: 1.6068e-05  max_mem: 2725M

The second is what it writes to a file. The printed time is a mean over all iterations, and a rough check
on the stamps. The batch is that of all devices, unless it says that it scales the configuration.

Source: github.com/facebookresearch/detectron2, detectron2/utils/events.py and logger.py; lines as
in public documentation of trainings.
"""

MASKRCNN_BENCHMARK = Format(
    name="maskrcnn-benchmark",
    pattern=r"{DATE} maskrcnn_benchmark\.trainer INFO: eta: [^\r\n]{1,40}?  "
    r"iter: {ITERATION}  [^\r\n]{0,1000}?\btime: {PACE} ",
    facts=facts_by(global_batch=r"\bSOLVER\.IMS_PER_BATCH'?,? '?(\d{1,9})\b"),
    evaluates=rb" INFO: Start evaluation on ",
    precedence=2,
    unit="images/s",
)
"""Facebook's maskrcnn-benchmark, as in MLPerf's Mask R-CNN: lines with time stamps.

    2020-06-25 18:56:46,514 maskrcnn_benchmark.trainer INFO: eta: 1:23:56  iter: 25700  loss: 0.5231 (0.6793)  .. time: 0.3168 (0.3522)  data: 0.0029 (0.0395)  lr: 0.080000  max mem: 8710

Iterations go on through all epochs; evaluations stand between the lines. Where MLLOG lines count, too
(since v1.0), they are meant.

Source: github.com/facebookresearch/maskrcnn-benchmark, maskrcnn_benchmark/engine/trainer.py; logs
in github.com/mlcommons/training_results_v0.7 at 0a8a85a.
"""

MMENGINE = Format(
    name="mmengine",
    system="openmmlab",
    pattern=r"{YEARLESS} - mmengine - INFO - (?:Epoch\(train\) +\[{EPOCH}\]|Iter\(train\) +)"
    r"\[ *{ITERATION}/{TOTAL}\]  [^\r\n]{0,1000}?\btime: {PACE}  data_time: {NUMBER}{END}",
    # The second is XTuner's, which lets the model talk.
    evaluates=rb" - mmengine - INFO - (?:(?:Iter|Epoch)\(val\) |after_train_iter in EvaluateChatHook)",
    facts=facts_by(world_size=r"\bGPU number: (\d{1,9})\s"),
)
"""OpenMMLab's trainings since 2022, on MMEngine: a clock of whole seconds without a year.

    11/22 21:31:51 - mmengine - INFO - Epoch(train) [1][160/160]  lr: 1.0000e-01  eta: 0:00:00  time: 0.1300  data_time: 0.0005  loss: 0.7413
    11/22 21:31:51 - mmengine - INFO - Iter(train) [ 50/2000]  lr: 1.0000e-01  eta: 0:04:11  time: 0.1300  data_time: 0.0005  loss: 0.7413

The printed time is the mean of the newest ten iterations, whatever the interval. Before, mmcv printed
other lines: see `openmmlab`.

Source: github.com/open-mmlab/mmengine, mmengine/runner/log_processor.py; runs of 0.10.
"""

OPENMMLAB = Format(
    name="openmmlab",
    pattern=r"{DATE} - (?:\w{1,40} - )?INFO - (?:Iter \[|Epoch \[{EPOCH}\]\[){ITERATION}/"
    r"\d{1,12}\]\s+lr: [^\r\n]{1,200}?, eta: [^\r\n]{1,40}?, time: {DURATION}, "
    r"data_time: {NUMBER}(?:,|{END})",
    # The second is mmcv's progress bar, of a validation that prints nothing else.
    evaluates=rb" - INFO - (?:Iter|Epoch)\(val\) \[|\d task/s, elapsed: ",
    facts=facts_by(
        batch_size=r"\bsamples_per_gpu ?= ?(\d{1,9})\b",
        world_size=(
            r"\bgpu_ids = range\(0, ([2-9]|\d\d{1,8})\)",
            r"Distributed training: False(?s:.{0,100000}?)\bgpu_ids = range\(0, (1)\)",
        ),
    ),
    unit="images/s",
    prints=Prints.BATCHES,
)
"""OpenMMLab's MMSegmentation and the like, as mmcv's text logger prints them.

    2022-02-10 06:17:39,706 - mmseg - INFO - Iter [8/40]	lr: 8.426e-03, eta: 0:00:58, time: 0.895, data_time: 0.019, memory: 19187, decode.loss_ce: 2.1385, ..
    2021-05-20 10:11:12,123 - mmdet - INFO - Epoch [1][50/7330]	lr: 1.978e-03, eta: 12:00:00, time: 0.490, data_time: 0.050, memory: 3900, ..

The name of the program came in 2020. The printed time is the mean of the iterations since the previous
line. An iteration is a batch, also where gradients of several are accumulated. gpu_ids is that of one
process under some launchers, so that one device is believed only where nothing is distributed.

Source: github.com/open-mmlab/mmcv, mmcv/runner/hooks/logger/text.py; logs of the first kind in
github.com/PaddlePaddle/Perf at e7a07c4, DeepLabV3P/OtherReports and HRNetW18/OtherReports.
"""

FACEBOOK_DLRM = Format(
    name="facebook-dlrm",
    pattern=r"(?:\[{RANK}\] )?Finished training it {ITERATION}/{TOTAL} of epoch {EPOCH}, "
    r"{MILLISECONDS} ms/it, loss {NUMBER}",
    prints=Prints.EVENLY,
)
"""Facebook's DLRM, as in MLPerf's results of Intel: the mean time of an iteration since a line.

    Finished training it 256/128028 of epoch 0, 69.51 ms/it, loss 0.140974, accuracy 96.732 %
    [6] Finished training it 44800/128028 of epoch 0, 41.10 ms/it, loss 0.123838, accuracy 96.704 %

Each rank prints; on several nodes their numbers stand in front. The time of tests is not in it.

Source: github.com/facebookresearch/dlrm, dlrm_s_pytorch.py; logs in
github.com/mlcommons/training_results_v0.7 at 0a8a85a, results of Intel.
"""

_DIGITS = re.compile(rb"\d+")


def _unquoted(log_format: Format) -> Read:
    known: bytes | None = None

    def read(match: re.Match[bytes], rank: tuple[int, ...]) -> Record | None:
        nonlocal known
        line = max(match.string.rfind(end, 0, match.start()) for end in (b"\n", b"\r")) + 1
        first = match.string.find(b"Epoch ", line)
        before = _DIGITS.sub(b"", match.string[line:first]).strip()
        if known is None or int(match["iteration"]) == 0:
            known = before
        return read_groups(log_format, match, rank) if before == known else None

    return read


PIPEDREAM = Format(
    name="pipedream",
    pattern=r"\bEpoch {ITERATION}: {DURATION} seconds",
    remembering=_unquoted,
    counts_from=0,
)
"""PipeDream's image classification: the seconds of each epoch, and no shorter window.

    Epoch 0: 151.468 seconds

An iteration here is an epoch, and its batch the number of samples in it, which is never printed. In
front of all lines of a run stands the same, digits apart: another line is a quotation.

Source: github.com/msr-fiddle/pipedream at 7db6a1c,
runtime/image_classification/main_with_runtime.py.
"""
