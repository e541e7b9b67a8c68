"""OneFlow's programs, and HugeCTR's, which prints the same arguments as OneFlow's Wide & Deep."""

from collections.abc import Sequence
from functools import partial

from reperf.logs import estimators
from reperf.logs.checks import Refused
from reperf.logs.clock import UNIX
from reperf.logs.facts import Facts
from reperf.logs.format import Estimate, Format, Record, facts_by

_format = partial(Format, system="oneflow")
_ARGUMENTS = facts_by(
    batch_size=r"\bbatch_size_per_device = (\d{1,9})\s",
    devices_per_node=r"\bgpu_num_per_node = (\d{1,9})\s",
    nodes=r"\bnum_nodes = (\d{1,9})\s",
    workload=r"(?m)^model = (resnet50|alexnet|inceptionv3)\s",  # its `vgg` may be several
)
"""The arguments that OneFlow's scripts print before they train."""

ONEFLOW_RESNET50 = _format(
    name="oneflow-resnet50",
    pattern=r"train: epoch {EPOCH}, iter {ITERATION}, loss: {NUMBER}, top_1: {NUMBER}, "
    r"top_k: {NUMBER}, samples/s: {RATE}(?: {UNIX})?{END}",
    facts=_ARGUMENTS,
    unit="images/s",
    published=estimators.between_iterations(20, 120, UNIX),
)
"""OneFlow-Benchmark's ResNet-50, with or without the time stamp that v0.2.0 added.

    train: epoch 0, iter 20, loss: 7.087004, top_1: 0.000000, top_k: 0.000000, samples/s: 3988.891 1597933942.9863544

Source: github.com/Oneflow-Inc/OneFlow-Benchmark, Classification/cnns/util.py; DLPerf
OneFlow/Classification/ConvNets/resnet50v1.5/extract_cnn_result.py.
"""

ONEFLOW_BERT = _format(
    name="oneflow-bert",
    pattern=r"step: {ITERATION}, total_loss: {NUMBER}, mlm_loss: {NUMBER}, nsp_loss: {NUMBER}, "
    r"throughput: {RATE}(?: {UNIX})?{END}",
    facts=_ARGUMENTS,
    counts_from=0,
    unit="sentences/s",
    published=estimators.between_iterations(19, 119, UNIX),
)
"""OneFlow-Benchmark's BERT pretraining, with or without the time stamp. Steps count from 0.

    step: 19, total_loss: 9.725, mlm_loss: 8.960, nsp_loss: 0.766, throughput: 54.982 1598056519.8844702

Source: github.com/Oneflow-Inc/OneFlow-Benchmark, LanguageModeling/BERT/util.py; DLPerf
OneFlow/LanguageModeling/BERT/extract_bert_result.py.
"""

_WIDE_AND_DEEP = facts_by(
    global_batch=(r"\bbatch_size = (\d{1,9})\s", r"\bTraining batchsize: (\d{1,9})\b"),
    devices_per_node=r"\bgpu_num_per_node = (\d{1,9})\s",
    nodes=r"\bnum_nodes = (\d{1,9})\s",
)
"""The arguments that the Wide & Deep scripts print; their batch is that of all devices."""
_LEFT_OUT = 100


def _mean_time(records: Sequence[Record], _facts: Facts) -> Estimate:
    """mean of the printed seconds, iteration 100 left out, in ms per iteration"""
    lines = [record for record in records if record.iteration != _LEFT_OUT]
    estimators.enough(lines, 1)
    mean = sum(record.duration or 0.0 for record in lines) / len(lines)
    latency = round(1000 * mean / lines[0].span, 3)
    return Estimate(latency, _LEFT_OUT, lines[-1].iteration, unit="ms/iteration")


HUGECTR_WIDE_DEEP = Format(
    name="hugectr-wide-deep",
    system="hugectr",
    marker=b"Time(",
    pattern=r"Iter: {ITERATION} Time\({SPAN} iters\): {DURATION}s Loss: {NUMBER}(?: lr:{NUMBER})?{END}",
    evaluates=rb"\bEval Time for \d|\bEvaluation, \w",
    facts=_WIDE_AND_DEEP,
    published=_mean_time,
)
"""HugeCTR's Wide & Deep: rank 0 prints the seconds of the iterations since its previous line.

    [HUGECTR][02:51:59][INFO][RANK0]: Iter: 200 Time(100 iters): 0.213347s Loss: 0.106469 lr:0.001000

Source: github.com/NVIDIA-Merlin/HugeCTR, HugeCTR/src/pybind/model.cpp; DLPerf
HugeCTR/wdl/tools/extract_hugectr_logs.py.
"""

_STEPS = 1000


def _a_thousand(records: Sequence[Record], _facts: Facts) -> Estimate:
    """seconds of 1000 iterations after the first line, given as ms per iteration"""
    start = records[0]
    stop = next((line for line in records if line.iteration - start.iteration == _STEPS), None)
    if stop is None:
        why = f"the published method needs a line {_STEPS} iterations after the first"
        raise Refused("method", why)
    seconds = (stop.time or 0.0) - (start.time or 0.0)
    return Estimate(
        round(seconds, 3), start.iteration, stop.iteration, seconds=seconds, unit="ms/iteration"
    )


ONEFLOW_WIDE_DEEP = _format(
    name="oneflow-wide-deep",
    # A time that broke off may go on with the next line's count.
    pattern=r"(?<![\w.-])(?<! time ){ITERATION} time {UNIX} loss {NUMBER}{END}",
    facts=_WIDE_AND_DEEP,
    published=_a_thousand,
)
"""OneFlow-Benchmark's Wide & Deep: a time stamp, and no speed.

    100 time 1602836839.6445205 loss 0.5471092355251312

Source: github.com/Oneflow-Inc/OneFlow-Benchmark,
ClickThroughRate/WideDeepLearning/wdl_train_eval.py; DLPerf
OneFlow/ClickThroughRate/WideDeepLearning/extract_info_from_log.py.
"""


def _mean_latency(records: Sequence[Record], _facts: Facts) -> Estimate:
    """mean of the printed latencies without the first and the last"""
    estimators.enough(records, 3)
    inside = records[1:-1]
    latency = sum((record.duration or 0.0) * 1000 for record in inside) / len(inside)
    return Estimate(
        round(latency, 3), records[0].iteration, inside[-1].iteration, unit="ms/iteration"
    )


ONEFLOW_MODELS_WIDE_DEEP = _format(
    name="oneflow-models-wide-deep",
    pattern=r"\[rank:\d{1,6}\] iter: {ITERATION}/{TOTAL}, loss: {NUMBER}, "
    r"latency\(ms\): {MILLISECONDS} \| {DATE}{END}",
    facts=facts_by(
        global_batch=r"\bbatch_size = (\d{1,9})\s",
        batch_size=r"\bbatch_size_per_proc = (\d{1,9})\s",
    ),
    published=_mean_latency,
)
"""OneFlow's models repository, Wide & Deep: milliseconds per iteration since the previous line.

    [rank:0] iter: 200/1200, loss: 0.0780148208141327, latency(ms): 2.2327776625752449 | 2021-12-01 13:19:02.848

Source: github.com/Oneflow-Inc/models, RecommenderSystems/wide_and_deep; DLPerf
OneFlow/ClickThroughRate/WideDeepLearning/extract_info_from_log.py.
"""
