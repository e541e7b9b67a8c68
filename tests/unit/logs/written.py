"""Logs written in the exact form of each format, for tests.

The lines follow the sources that each format module names; docs/log-formats.md shows them.
python tests/unit/logs/written.py tests/data/logs/written writes what lies there.
"""

import random
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

START = datetime(2020, 9, 15, 14, 29, 13, tzinfo=UTC)
STEP = 0.25
SLOW_STEP = 4.0
"""Seconds an iteration takes, and where times are printed in whole seconds."""


@dataclass(frozen=True)
class Style:
    """How one format writes.

    Attributes:
        line: makes the line of an iteration from its number as printed, the seconds since START
            at its end, and the speed of all devices in samples/s.
        head: what stands before, about two nodes of two devices with a batch of 8 each.
        every: iterations between two lines.
        first: the first iteration that is printed.
        step: seconds an iteration takes.
        facts: what the head does not say, for the command line.
        tail: what stands behind.
        says_batch: whether a log that can be read says its global batch.
        covers: how many iterations a printed duration is worth, if it is a mean.
    """

    line: Callable[[int, float, float], str]
    head: tuple[str, ...] = ()
    every: int = 1
    first: int = 1
    facts: tuple[tuple[str, int], ...] = (("batch_size", 8), ("nodes", 2), ("devices_per_node", 2))
    tail: tuple[str, ...] = ()
    has_time: bool = True
    step: float = STEP
    says_batch: bool = False
    covers: int = 1


NODES, DEVICES, BATCH = 2, 2, 8
WORLD = NODES * DEVICES
GLOBAL_BATCH = WORLD * BATCH
RATE = GLOBAL_BATCH / STEP


def _at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def _loss(seconds: float) -> str:
    """A loss that tells the runs in one log apart."""
    return f"{7 - seconds / 1e5:.6f}"


def _date(seconds: float) -> str:
    return f"{_at(seconds):%Y-%m-%d %H:%M:%S.%f}"


def _unix(seconds: float) -> str:
    return f"{START.timestamp() + seconds:.7f}"


def _nvlog(seconds: float) -> str:
    stamp = START.timestamp() + seconds
    return f":::NVLOGv0.2.2 Tacotron2_PyT {stamp:.9f} (dllogger/logger.py:251)"


def _absl(seconds: float, where: str) -> str:
    return f"I{_at(seconds):%m%d %H:%M:%S.%f} 139725706671936 {where}]"


def _dll(seconds: float) -> str:
    return f"DLL {_date(seconds)} -"


def _bar(count: int, seconds: float) -> str:
    hours, rest = divmod(int(seconds), 3600)
    elapsed = (f"{hours}:" if hours else "") + f"{rest // 60:02d}:{rest % 60:02d}"
    return f"{count // 10:3d}%|#         | {count}/1000 [{elapsed}<1:00:00,  4.00s/it"


def _event(key: str, value: str, time_ms: int = 0, metadata: str = "{}") -> str:
    return (
        f':::MLLOG {{"namespace": "", "time_ms": {time_ms}, "event_type": "POINT_IN_TIME", '
        f'"key": "{key}", "value": {value}, "metadata": {metadata}}}'
    )


_GLOBAL_BATCH_SIZE = _event("global_batch_size", str(GLOBAL_BATCH))
_RUN_STOP = _event("run_stop", "null", metadata='{"status": "success"}')


def _of_mlperf(
    event: Callable[[int, float, float], tuple[str, str, str]],
    head: tuple[str, ...] = (_GLOBAL_BATCH_SIZE,),
    **more: Any,
) -> Style:
    """How MLPerf's submissions write: `event` makes an event's key, value and metadata."""

    def line(iteration: int, seconds: float, rate: float) -> str:
        key, value, metadata = event(iteration, seconds, rate)
        return _event(key, value, int(START.timestamp() * 1000 + seconds * 1000), metadata)

    return Style(line, head, tail=(_RUN_STOP,), **more)


def _took(rate: float) -> float:
    """The seconds of one iteration at a speed of all devices."""
    return GLOBAL_BATCH / rate


ONEFLOW_HEAD = (
    f"batch_size_per_device = {BATCH}",
    f"gpu_num_per_node = {DEVICES}",
    f"num_nodes = {NODES}",
)
WIDE_DEEP_HEAD = (
    f"batch_size = {GLOBAL_BATCH}",
    f"gpu_num_per_node = {DEVICES}",
    f"num_nodes = {NODES}",
)

STYLES = {
    "oneflow-resnet50": Style(
        line=lambda i, t, r: (
            f"train: epoch 0, iter {i}, loss: {_loss(t)}, top_1: 0.000000, top_k: 0.000000, "
            f"samples/s: {r:.3f} {_unix(t)}"
        ),
        head=("model = resnet50", *ONEFLOW_HEAD),
        every=20,
        first=20,
        facts=(),
    ),
    "oneflow-bert": Style(
        line=lambda i, t, r: (
            f"step: {i}, total_loss: 9.725, mlm_loss: 8.960, nsp_loss: 0.766, "
            f"throughput: {r:.3f} {_unix(t)}"
        ),
        head=ONEFLOW_HEAD,
        every=20,
        first=19,
        facts=(),
    ),
    "ngc-pytorch-resnet50": Style(
        line=lambda i, t, r: (
            f"{_dll(t)} Epoch: 0 Iteration: {i}  train.loss : {_loss(t)}  "
            f"train.total_ips : {r:.2f} img/s"
        ),
        head=(
            "+ python multiproc.py --nnodes 2 --node_rank 0 --nproc_per_node 2 main.py -b 8",
            f"{_dll(0)} PARAMETER epochs : 1  batch_size : 8  optimizer_batch_size : -1  "
            "gpu : 2  world_size : 4 ",
        ),
        facts=(),
    ),
    "ngc-pytorch-bert": Style(
        line=lambda i, t, r: (
            f"{_dll(t)} Training Epoch: 0 Training Iteration: {i}  average_loss : 10.94  "
            "step_loss : 10.91  learning_rate : 6e-05 "
        ),
        head=(
            "python -m torch.distributed.launch --nnodes=2 --nproc_per_node=2 run_pretraining.py",
            f'{_dll(0)} PARAMETER Config : ["Namespace(gradient_accumulation_steps=1, '
            'train_batch_size=8)"] ',
        ),
        facts=(),
    ),
    "ngc-tensorflow1-resnet50": Style(
        line=lambda i, t, r: (
            f"{_dll(t)} (0, {i}) imgs_per_sec : {r!r}  cross_entropy : 6.9  l2_loss : 0.4  "
            "total_loss : 7.3  learning_rate : 0.001 "
        ),
        head=(f"{_dll(0)} PARAMETER mode : train  batch_size : 8  num_iter : 120 ",),
        first=0,
        facts=(("nodes", 2), ("devices_per_node", 2)),
    ),
    "ngc-tensorflow1-bert": Style(
        line=lambda i, t, r: (
            f"{_dll(t)} Iteration: {i}  throughput_train : {r:.3f} seq/s mlm_loss : 10.2346  "
            "nsp_loss : 0.6981  total_loss : 10.9327  avg_loss_step : 10.9687  "
            "learning_rate : 1e-05 "
        ),
        every=10,
        first=10,
    ),
    "ngc-mxnet-resnet50": Style(
        line=lambda i, t, r: (
            f"{_at(t):%Y-%m-%d %H:%M:%S},{_at(t).microsecond // 1000:03d}:INFO: "
            f"Epoch[0] Batch [{i}-{i}]\tSpeed: {r!r} samples/sec\tLR: 0.014888622754491019\t"
        ),
        head=(
            "horovodrun -np 4 -H a:2,b:2 python3 train.py --batch-size 32 --benchmark-iters 120",
        ),
        first=0,
        facts=(),
    ),
    "mxnet-resnet50": Style(
        line=lambda i, t, r: (
            f"INFO:root:Epoch[0] Batch[{i}]\tSpeed: {r:f} samples/sec\t"
            "accuracy=0.000000\tlr=0.001000"
        ),
        head=("INFO:root:Namespace(batch_norm=False, batch_size=8, dtype='float32')",),
        first=0,
        facts=(("nodes", 2), ("devices_per_node", 2)),
        has_time=False,
    ),
    "mxnet-bert": Style(
        line=lambda i, t, r: (
            f"INFO:root:06:12:22 [step {i}]\tmlm_loss={_loss(t)}\tnsp_loss= 0.69\t"
            "throughput=83.2K tks/s\tlr=0.0000100 time=0.25, "
            f"latency={_took(r) * 1000:.1f} ms/batch"
        ),
        head=("INFO:root:06:12:00 Namespace(accumulate=1, total_batch_size=32)",),
        facts=(("nodes", 2), ("devices_per_node", 2)),
    ),
    "pytorch-resnet50": Style(
        line=lambda i, t, r: (
            f"Epoch: [0][{i:3d}/1530]\tTime {_took(r):6.3f} ({max(t - 3, 0) / (i + 1):6.3f})\t"
            f"Data  0.108 ( 0.072)\tLoss {_loss(t)} (1.9712e+01)\tAcc@1   1.56 (  2.34)\t"
            "Acc@5  13.28 ( 10.81)"
        ),
        head=("python main.py --arch resnet50 --batch-size 16 --world-size 2 --rank 0 /data",),
        first=0,
        facts=(),
    ),
    "tensorflow2-resnet50": Style(
        line=lambda i, t, r: (
            f"{_absl(t, 'keras_utils.py:145')} TimeHistory: {20 * _took(r):.2f} seconds, "
            f"{r:.2f} examples/second between steps {i - 20} and {i}"
        ),
        every=20,
        first=20,
    ),
    "tensorflow2-bert": Style(
        line=lambda i, t, r: (
            f"{_absl(t, 'model_training_utils.py:450')} Train Step: {i}/1200  / loss = 9.6"
        ),
    ),
    "paddle1-resnet50": Style(
        line=lambda i, t, r: (
            f"[Pass 0, train batch {i}] \tloss {_loss(t)}, acc1 0.00000, acc5 0.00781, lr 0.00100, "
            f"elapse {_took(r):2.4f} sec"
        ),
        head=("-----------  Configuration Arguments -----------", "batch_size: 16"),
        first=0,
        facts=(("nodes", 2),),
    ),
    "paddle1-bert": Style(
        line=lambda i, t, r: (
            f"epoch: 1, progress: 1/1, step: {i}, loss: {_loss(t)}, ppl: 17796.216797, "
            f"next_sent_acc: 0.560417, speed: {NODES / _took(r):f} steps/s, "
            "file: demo_wiki_train.gz"
        ),
        has_time=False,
    ),
    "paddle2-resnet50": Style(
        line=lambda i, t, r: (
            f"[{_at(t):%Y/%m/%d %H:%M:%S}] root INFO: epoch:0   train step:{i:<4d} loss: 6.9 "
            f"lr: 0.1 batch_cost: {_took(r):.5f} s, reader_cost: 0.01 s, "
            f"ips: {r / WORLD:.5f} images/sec."
        ),
        first=0,
        step=SLOW_STEP,
    ),
    "paddle2-bert": Style(
        line=lambda i, t, r: (
            f"[{_at(t):%Y-%m-%d %H:%M:%S},{_at(t).microsecond // 1000:03d}] [    INFO] - "
            f"global step {i}, epoch: 0, batch: {i - 1}, loss: 11.2, "
            f"avg_reader_cost: 0.00012 sec, avg_batch_cost: {_took(r):.5f} sec, "
            f"avg_samples: 8.00000, ips: {r / WORLD:.5f} sequences/sec"
        ),
        facts=(("nodes", 2), ("devices_per_node", 2)),
        every=10,
        first=10,
    ),
    "mindspore-resnet50": Style(
        line=lambda i, t, r: (
            f"epoch: {i // 10} step: 10, loss is {_loss(t)}\n"
            f"epoch time: {10 * _took(r) * 1000:5.3f} ms, per step time: {_took(r) * 1000:5.3f} ms"
        ),
        every=10,
        first=10,
    ),
    "mindspore-bert": Style(
        line=lambda i, t, r: (
            f"epoch: 0.0, current epoch percent: 0.{i:03d}, step: {i}, "
            f"outputs are (Tensor({_loss(t)}))\n"
            f"epoch time: {10 * _took(r) * 1000:5.3f} ms, per step time: {_took(r) * 1000:5.3f} ms"
        ),
        every=10,
        first=10,
    ),
    "hugectr-wide-deep": Style(
        line=lambda i, t, r: (
            f"[HUGECTR][02:51:59][INFO][RANK0]: Iter: {i} Time(10 iters): {10 * _took(r):f}s "
            f"Loss: {_loss(t)} lr:0.001000"
        ),
        head=WIDE_DEEP_HEAD,
        every=10,
        first=10,
        facts=(),
    ),
    "oneflow-wide-deep": Style(
        line=lambda i, t, r: f"{i} time {_unix(t)} loss {_loss(t)}",
        head=WIDE_DEEP_HEAD,
        every=20,
        first=20,
        facts=(),
    ),
    "oneflow-models-wide-deep": Style(
        line=lambda i, t, r: (
            f"[rank:0] iter: {i}/1200, loss: 0.0831875279545784, "
            f"latency(ms): {_took(r) * 1000:.16f} | {_date(t)[:-3]}"
        ),
        head=(f"batch_size = {GLOBAL_BATCH}", f"batch_size_per_proc = {BATCH}"),
        every=20,
        first=20,
        facts=(("nodes", 2), ("devices_per_node", 2)),
    ),
    "pipedream": Style(
        line=lambda i, t, r: f"Epoch {i}: {_took(r) + (t > 3600) / 1000:.3f} seconds",
        first=0,
    ),
    "mllog": Style(
        line=lambda i, t, r: _event(
            "tracked_stats",
            f'{{"iteration": {i}, "seconds": {1000 + t!r}, "samples": {i * GLOBAL_BATCH}, '
            f'"loss": 6.9, "throughput": {r!r}}}',
            int(START.timestamp() * 1000 + t * 1000),
        ),
        head=(
            _event("submission_benchmark", '"resnet50"'),
            _event("global_batch_size", str(GLOBAL_BATCH)),
            _event("world_size", str(WORLD)),
        ),
        every=20,
        first=20,
        facts=(),
        tail=(_RUN_STOP,),
    ),
    "mlperf": _of_mlperf(
        lambda i, t, r: (
            "tracked_stats",
            f'{{"throughput": {r!r}}}',
            f'{{"file": "train.py", "lineno": 87, "step_num": {i}}}',
        ),
        every=20,
        first=20,
    ),
    "mlperf-samples": _of_mlperf(
        lambda i, t, r: (
            "tracked_stats",
            f'{{"train_loss": {_loss(t)}}}',
            f'{{"file": "custom_callbacks.py", "samples_count": {i * GLOBAL_BATCH}, "step": {i}}}',
        ),
        every=10,
        first=10,
    ),
    "mlperf-losses": _of_mlperf(
        lambda i, t, r: (
            "train_loss",
            _loss(t),
            f'{{"samples_count": {i * GLOBAL_BATCH}, "lr": 3.125e-06}}',
        ),
        every=10,
        first=10,
        facts=(),
        says_batch=True,
    ),
    "mlperf-epochs": _of_mlperf(
        lambda i, t, r: (
            "tracked_stats",
            f'{{"throughput": {r!r}}}',
            f'{{"file": "callbacks.py", "lineno": 81, "step": {i / 1000:.4f}1}}',
        ),
        has_time=False,
        facts=(),
    ),
    "mlperf-steps": _of_mlperf(
        lambda i, t, r: (
            "tracked_stats",
            f'{{"train_step_time": {_took(r)!r}, "reduced_train_loss": {_loss(t)}}}',
            f'{{"file": "custom_callbacks.py", "lineno": 312, "step": {i}}}',
        ),
    ),
    "mlperf-blocks": _of_mlperf(
        lambda i, t, r: (
            "block_start",
            '"training_step"',
            f'{{"file": "train.py", "samples_count": {i * GLOBAL_BATCH}}}',
        ),
        every=20,
        first=20,
        facts=(),
        says_batch=True,
    ),
    "mlperf-evaluations": Style(
        line=lambda i, t, r: "\n".join(
            _event(key, "0.41", int(START.timestamp() * 1000 + t * 1000), metadata)
            for key, metadata in (
                (
                    "eval_start",
                    f'{{"lineno": 1106, "epoch_num": {i * GLOBAL_BATCH}, "step_num": {i}}}',
                ),
                (
                    "eval_stop",
                    f'{{"lineno": 1159, "epoch_count": {i * GLOBAL_BATCH}, "step_num": {i}}}',
                ),
                ("eval_accuracy", f'{{"lineno": 1160, "epoch_num": {i * GLOBAL_BATCH}}}'),
            )
        ),
        head=(_GLOBAL_BATCH_SIZE,),
        tail=(_RUN_STOP,),
        every=20,
        first=20,
        facts=(),
        says_batch=True,
    ),
    "mlperf-loops": _of_mlperf(
        lambda i, t, r: (
            "block_start",
            "null",
            f'{{"first_epoch_num": {i}, "epoch_count": 1, "file": "models/ssd/ssd_main.py"}}',
        ),
        has_time=False,
        first=0,
        facts=(),
    ),
    "mlperf-passes": _of_mlperf(
        lambda i, t, r: ("epoch_start", "null", f'{{"file": "train.py", "epoch_num": {i}}}'),
        head=(
            _event("submission_benchmark", '"rnnt"'),
            _GLOBAL_BATCH_SIZE,
            _event("train_samples", str(GLOBAL_BATCH)),
        ),
        first=0,
        facts=(),
        says_batch=True,
    ),
    "ngc-pytorch-mlperf-bert": Style(
        line=lambda i, t, r: (
            f"0: {{'training_steps': {i}, 'average_loss': {_loss(t)}, 'step_loss': 1.2744140625, "
            f"'learning_rate': 0.0002, 'seq/s': {r!r}, 'global_steps': {i}, "
            f"'samples_trained': {i * GLOBAL_BATCH}, 'skipped_steps': 0, 'timestamp': {_unix(t)}}}"
        ),
        head=(_event("global_batch_size", str(GLOBAL_BATCH)),),
        facts=(("nodes", 2), ("devices_per_node", 2)),
        says_batch=True,
    ),
    "ngc-mxnet-ssd": Style(
        line=lambda i, t, r: (
            f"[Training][Iteration {i}][Epoch 1, Batch {i}/300] lr: 0.06881, "
            f"training time: {_took(r) * 1000:.3f} [ms], speed: {r:.3f} [imgs/sec], "
            f"loss={_loss(t)}"
        ),
        every=20,
        first=20,
        covers=20,
    ),
    "ngc-pytorch-ssd": Style(
        line=lambda i, t, r: (
            f"Iteration: {i:6d}, Loss function: 4.149, Average Loss: {_loss(t)}, "
            f"avg. samples / sec: {r:.2f}"
        ),
        every=20,
        first=0,
        facts=(("global_batch", 32),),
        has_time=False,
    ),
    "ngc-pytorch-transformer": Style(
        line=lambda i, t, r: (
            f"| epoch 001: {i:6d} / 2184 loss={_loss(t)}, nll_loss=0.000, ppl=1.00, wps={r:.0f}, "
            f"ups=3.1, wpb=56091, bsz=485, num_updates={i}, lr=0.000985036, clip=100%, wall={t:.0f}"
        ),
        has_time=False,
        facts=(),
    ),
    "ngc-pytorch-dlrm": Style(
        line=lambda i, t, r: (
            f"Epoch:[0/1] [{i}/75869]  eta: 0:04:18  loss: {_loss(t)}  "
            f"step_time: {_took(r) * 1000:.4f} ms  lr: 10.341818"
        ),
        every=10,
        first=10,
        covers=10,
    ),
    "facebook-dlrm": Style(
        line=lambda i, t, r: (
            f"Finished training it {i}/128028 of epoch 0, {_took(r) * 1000:.2f} ms/it, "
            f"loss {_loss(t)}, accuracy 96.732 %"
        ),
        every=10,
        first=10,
        covers=10,
    ),
    "torchvision": Style(
        line=lambda i, t, r: (
            f"Epoch: [0]  [{i:4d}/9143]  eta: 0:29:38  lr: {_loss(t)}  time: {_took(r):.4f}  "
            "data: 0.0269  max mem: 10522"
        ),
        every=20,
        first=0,
        covers=20,
    ),
    "ngc-pytorch-gnmt": Style(
        line=lambda i, t, r: (
            f"0: TRAIN [0][{i}/1938]\tTime {_took(r):.3f} (0.153)\tData 1.45e-04 (2.75e-02)\t"
            f"Tok/s 99245 (94154)\tLoss/tok {_loss(t)} (10.1185)\tLR 2.576e-05"
        ),
        first=0,
    ),
    "ngc-pytorch-classification": Style(
        line=lambda i, t, r: (
            f"{_dll(t)} Epoch: 0 Iteration: {i}  train.loss : {_loss(t)} None "
            f"train.compute_ips : {r + 1:.2f} images/s train.total_ips : {r:.2f} images/s "
            "train.lr : 0.1  train.grad_scale : 256.00000 None"
        ),
        head=(
            f"{_dll(0)} PARAMETER data : /imagenet  batch_size : 8  optimizer_batch_size : -1  "
            "lr : 0.1  gpu : 0  world_size : 4 ",
        ),
        facts=(),
    ),
    "ngc-mxnet-classification": Style(
        line=lambda i, t, r: (
            f"{_dll(t)} Epoch: 0 Iteration: {i}  train.loss : {_loss(t)}  train.ips : {r!r}  "
            "train.lr : 0.0010922155688622753 "
        ),
        head=(
            f"{_dll(0)} PARAMETER arch : resnetv15  gpus : [0]  kv_store : horovod  "
            "dtype : float16  amp : False  batch_size : 32  num_epochs : 3 ",
        ),
        every=20,
        first=19,
        facts=(),
    ),
    "gluoncv": Style(
        line=lambda i, t, r: (
            f"[Epoch 0][Batch {i}], Speed: {r:.3f} samples/sec, RPN_Conf={_loss(t)},RPNAcc=0.986"
        ),
        facts=(("global_batch", 32),),
        has_time=False,
    ),
    "deepspeed": Style(
        line=lambda i, t, r: (
            f"[{_at(t):%Y-%m-%d %H:%M:%S},{_at(t).microsecond // 1000:03d}] [INFO] "
            f"[timer.py:260:stop] epoch=0/micro_step={4 * i}/global_step={i}, "
            f"RunningAvgSamplesPerSec={r * 0.98!r}, CurrSamplesPerSec={r!r}, "
            f"MemAllocated={_loss(t)}GB, MaxMemAllocated=38.49GB"
        ),
        head=("[2023-11-07 01:55:00,711] [INFO] [config.py:964:print]   train_batch_size ... 32",),
        every=10,
        first=10,
        facts=(),
        says_batch=True,
    ),
    "paddleseg": Style(
        line=lambda i, t, r: (
            f"{_at(t):%Y-%m-%d %H:%M:%S} [INFO]\t[TRAIN] epoch: 1, iter: {i}/200, "
            f"loss: {_loss(t)}, lr: 0.009594, batch_cost: {_took(r):.4f}, reader_cost: 0.00324, "
            f"ips: {r / WORLD:.4f} samples/sec | ETA 00:02:13"
        ),
        head=("GPUs used: 4", "batch_size: 8"),
        every=10,
        first=10,
        facts=(),
        covers=10,
    ),
    "openmmlab": Style(
        line=lambda i, t, r: (
            f"{_at(t):%Y-%m-%d %H:%M:%S},{_at(t).microsecond // 1000:03d} - mmseg - INFO - "
            f"Iter [{i}/200]\tlr: 8.426e-03, eta: 0:00:58, time: {_took(r):.3f}, data_time: 0.019, "
            f"memory: 19187, decode.loss_ce: 2.1385, loss: {_loss(t)}"
        ),
        head=("data = dict(", "    samples_per_gpu=8,", "gpu_ids = range(0, 4)"),
        every=10,
        first=10,
        facts=(),
    ),
    "mmengine": Style(
        line=lambda i, t, r: (
            f"{_at(t):%m/%d %H:%M:%S} - mmengine - INFO - Epoch(train) [1][{i:3d}/300]  "
            f"lr: 1.0000e-01  eta: 0:00:58  time: {_took(r):.4f}  data_time: 0.0005  "
            f"loss: {_loss(t)}"
        ),
        head=("    GPU number: 4",),
        every=20,
        first=20,
        facts=(("batch_size", 8),),
        step=SLOW_STEP,
    ),
    "detectron2": Style(
        line=lambda i, t, r: (
            f"[{_at(t):%m/%d %H:%M:%S} d2.utils.events]:  eta: 0:05:22  iter: {i}  "
            f"total_loss: {_loss(t)}  loss_cls: 0.595  time: {_took(r):.4f}  data_time: 0.0222  "
            "lr: 1.6068e-05  max_mem: 2725M"
        ),
        head=(
            "Rank of current process: 0. World size: 4",
            "  IMS_PER_BATCH: 32",
        ),
        every=20,
        first=19,
        facts=(),
        step=SLOW_STEP,
        says_batch=True,
    ),
    "tf-cnn-benchmarks": Style(
        line=lambda i, t, r: (
            f"INFO|{_at(t):%Y-%m-%dT%H:%M:%S}|/opt/launcher.py|27| {i}\timages/sec: "
            f"{GLOBAL_BATCH * i / max(t - 3, 1e-3):.1f} +/- 0.4 (jitter = 0.7)\t{_loss(t)}"
        ),
        head=(
            "Batch size:  32 global",
            "             8 per device",
            "Devices:     ['/gpu:0', '/gpu:1', '/gpu:2', '/gpu:3']",
        ),
        every=10,
        first=10,
        facts=(),
        step=SLOW_STEP,
        says_batch=True,
    ),
    "modded-nanogpt": Style(
        line=lambda i, t, r: (
            f"step:{i}/1480 train_time:{1000 * t:.0f}ms step_avg:{1000 * t / i:.2f}ms"
        ),
    ),
    "ngc-pytorch-transformerxl": Style(
        line=lambda i, t, r: (
            f"| epoch   1 step {i:8} | batches {i:6} / 11201 | lr 0.000e+00 | "
            f"ms/batch {1e3 * GLOBAL_BATCH / r:5.1f} | tok/s {192 * r:7.0f} | "
            f"loss {_loss(t)} | ppl 85223.53"
        ),
        head=(f"Namespace(adaptive=False, batch_size={GLOBAL_BATCH}, clip=0.25, tgt_len=192)",),
        every=10,
        first=10,
        facts=(),
        covers=10,
        says_batch=True,
    ),
    "ngc-pytorch-squad": Style(
        line=lambda i, t, r: (
            f"{_dll(t)} Training Epoch: 0 Training Iteration: {i}  step_loss : {_loss(t)}  "
            "learning_rate : 0.0 "
        ),
        head=(
            "python -m torch.distributed.launch --nnodes=2 --nproc_per_node=2 run_squad.py",
            f'{_dll(0)} PARAMETER Config : ["Namespace(fp16=True, gradient_accumulation_steps=1, '
            'log_freq=1, train_batch_size=8, use_env=False)"] ',
        ),
        facts=(),
    ),
    "ngc-pytorch-tacotron2": Style(
        line=lambda i, t, r: f"{_dll(t)} (0, {i}) train_iter_time : {_took(r)!r} ",
        head=(
            f"{_dll(0)} PARAMETER batch_size : 8 ",
            f"{_dll(0)} PARAMETER world_size : 4 ",
        ),
        first=0,
        facts=(),
    ),
    "ngc-pytorch-tacotron2-nvlog": Style(
        line=lambda i, t, r: f"{_nvlog(t)} train_iter_stop: {i}",
        head=(
            f'{_nvlog(0)} args: {{"model_name": "WaveGlow", "batch_size": 8, "world_size": 4}}',
            f"{_nvlog(0)} train_epoch_start: 0",
        ),
        first=0,
        facts=(),
    ),
    "paddle2-transformer": Style(
        line=lambda i, t, r: (
            f"{_date(t)[:-3]}-INFO: step_idx: {i}, epoch: 0, batch: {i}, avg loss: {_loss(t)}, "
            "normalized loss: 9.419319, ppl: 48385.699219, avg_speed: 4.44 step/s, batch_cost: "
            "0.22501 sec, reader_cost: 0.00011 sec, tokens: 46643, ips: 20729.05367 words/sec"
        ),
        has_time=False,
        facts=(),
    ),
    "paddlerec": Style(
        line=lambda i, t, r: (
            f"{_date(t)[:-3]} - INFO - Epoch: {i}, using time {_took(r)} second, "
            f"ips {r} example/sec."
        ),
        has_time=False,
        facts=(),
    ),
    "megatron": Style(
        line=lambda i, t, r: (
            f" [{_at(t):%Y-%m-%d %H:%M:%S}] iteration {i:8d}/    1000 | "
            f"consumed samples: {i * GLOBAL_BATCH:12d} | "
            f"elapsed time per iteration (ms): {_took(r) * 1000:.1f} | "
            "throughput per GPU (TFLOP/s/GPU): 40.4 | learning rate: 1.500000E-06 | "
            f"global batch size: {GLOBAL_BATCH:5d} | lm loss: {_loss(t)} | loss scale: 1.0 |"
        ),
        every=10,
        first=10,
        facts=(),
        says_batch=True,
        covers=10,
    ),
    "nemo": Style(
        line=lambda i, t, r: (
            f"Training epoch 0, iteration {i}/999 | lr: 6.897e-06 | "
            f"global_batch_size: {GLOBAL_BATCH} | global_step: {i} | "
            f"reduced_train_loss: {_loss(t)} | train_step_timing in s: {_took(r):.4} | "
            f"consumed_samples: {(i + 1) * GLOBAL_BATCH}"
        ),
        first=0,
        facts=(),
        says_batch=True,
    ),
    "torchtitan": Style(
        line=lambda i, t, r: (
            f"[titan] {_at(t):%Y-%m-%d %H:%M:%S},{_at(t).microsecond // 1000:03d} - root - INFO - "
            f"step: {i:2}  loss: {_loss(t)}  memory: 30.99GiB(32.62%)  "
            f"tps: {2048 * r:,.0f}  tflops: 406.65  mfu: 41.12%"
        ),
        head=(
            "[titan] 2025-06-04 08:51:20,000 - root - INFO - Building 1-D device mesh with "
            "['dp_shard'], [4]",
            "[titan] 2025-06-04 08:51:30,000 - root - INFO - Trainer is initialized with local "
            "batch size 8, global batch size 32, gradient accumulation steps 1, "
            "sequence length 8192, total steps 1000 (warmup 200).",
        ),
        every=10,
        first=10,
        facts=(),
    ),
    "maxtext": Style(
        line=lambda i, t, r: (
            f"completed step: {i}, seconds: {_took(r):.3f}, TFLOP/s/device: 328.139, "
            f"Tokens/s/device: 4204.799, total_weights: 16777216, loss: {_loss(t)}"
        ),
        head=("Config param global_batch_size_to_train_on: 32",),
        first=0,
        facts=(),
    ),
    "gluonnlp-bert": Style(
        line=lambda i, t, r: (
            f"INFO:root:[step {i}]\tmlm_loss={_loss(t)}\tmlm_acc=6.20519\tnsp_loss=0.68434\t"
            f"nsp_acc=55.795\tthroughput=124.0K tks/s\tlr=0.0000050 time={10 * _took(r):.2f}"
        ),
        head=(
            "INFO:root:Namespace(accumulate=1, batch_size=8, batch_size_eval=8, data='/data', "
            "gpus='0,1,2,3', kvstore='device_sync', log_interval=10, seed=0)",
        ),
        every=10,
        first=9,
        facts=(),
    ),
    "ngc-pytorch-rnnt": Style(
        line=lambda i, t, r: (
            f"{_dll(t)} epoch    1 | iter {i:4d}/272 | loss  {_loss(t)} | utts/s {r:5.0f} | "
            f"took  {_took(r):.2f} s | lrate 4.00e-03"
        ),
        facts=(("batch_size", 8), ("nodes", 2), ("devices_per_node", 2), ("accumulation", 1)),
    ),
    "maskrcnn-benchmark": Style(
        line=lambda i, t, r: (
            f"{_at(t):%Y-%m-%d %H:%M:%S},{_at(t).microsecond // 1000:03d} "
            f"maskrcnn_benchmark.trainer INFO: eta: 6:38:07  iter: {i}  loss: {_loss(t)} (3.3078)  "
            f"time: {_took(r):.4f} (0.5975)  data: 0.0025 (0.0923)  lr: 0.002000  max mem: 7905"
        ),
        every=20,
        first=20,
    ),
    "ngc-pytorch-gnn": Style(
        line=lambda i, t, r: (
            f"{_dll(t)} Iteration {i} | train_acc : 0.7090 % | "
            f"iteration_time : {_took(r) * 1000:.2f} ms | train_loss : {_loss(t)}"
        ),
    ),
    "lightning": Style(
        line=lambda i, t, r: f"Epoch 0: {_bar(i, t)}, loss={_loss(t)}, v_num=193315]",
        step=SLOW_STEP,
    ),
    "huggingface": Style(
        line=lambda i, t, r: f"{_bar(i, t)}]",
        head=(
            "***** Running training *****",
            "  Instantaneous batch size per device = 8",
            "  Total train batch size (w. parallel, distributed & accumulation) = 32",
            "  Gradient Accumulation steps = 1",
            "  Total optimization steps = 1,000",
        ),
        says_batch=True,
        facts=(),
        step=SLOW_STEP,
    ),
    "keras": Style(
        line=lambda i, t, r: (
            f"Epoch {i}/200\n32/32 [==============================] - 100s 3s/step - "
            f"loss: {_loss(t)} - accuracy: 0.9153 - val_loss: 0.1392"
        ),
        has_time=False,
    ),
}
STYLES["fleetx-bert"] = STYLES["paddle1-bert"]
SAME_LINES = ("fleetx-bert", "paddle1-bert")
"""Formats that only the user can tell apart."""


def rate(name: str) -> float:
    """The speed of all devices in a written log, in samples/s."""
    return GLOBAL_BATCH / STYLES[name].step


def iterations(name: str, last: int = 200) -> Iterator[int]:
    """The iterations that a log of a format prints."""
    style = STYLES[name]
    return iter(range(style.first, last + 1, style.every))


def written(name: str, last: int = 200, start: float = 0.0) -> list[str]:
    """A whole log, without the line ends.

    Args:
        name: of the format.
        last: iteration that is printed last.
        start: seconds after START at which it begins.
    """
    style = STYLES[name]
    lines = [style.line(i, start + 3 + i * style.step, rate(name)) for i in iterations(name, last)]
    return [*style.head, "some other line", *"\n".join(lines).split("\n"), *style.tail]


def uneven(name: str, last: int = 200) -> list[str]:
    """A whole log each of whose steps takes another time, without the line ends.

    Args:
        name: of the format.
        last: iteration that is printed last.
    """
    style, chance = STYLES[name], random.Random(1)
    lines, seconds = [*style.head, "some other line"], 3.0
    for iteration in iterations(name, last):
        took = round(style.every * style.step * (0.8 + 0.4 * chance.random()), 3)
        if style.step >= 1:  # times are printed in whole seconds
            took = round(took)
        seconds += took
        lines.append(style.line(iteration, seconds, GLOBAL_BATCH * style.every / took))
    return [*lines, *style.tail]


def last_of_excerpt(name: str) -> int:
    """The last iteration of the log of a format that lies under tests/data."""
    style = STYLES[name]
    return style.first + (6 * style.every if style.every > 1 else 40)


if __name__ == "__main__":
    for written_name in STYLES:
        log = "".join(f"{line}\n" for line in uneven(written_name, last_of_excerpt(written_name)))
        Path(sys.argv[1], f"{written_name}.log").write_text(log, encoding="utf-8")
