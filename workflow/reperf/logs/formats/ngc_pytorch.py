"""NVIDIA's programs in PyTorch: DeepLearningExamples and submissions to MLPerf."""

import re
from collections import defaultdict
from functools import partial

from reperf.logs import estimators
from reperf.logs.clock import DATE
from reperf.logs.format import Format, Prints, Read, Record, durations_since, facts_by, read_groups

_format = partial(Format, system="ngc-pytorch")
_NODES = {
    "nodes": r"--nnodes[ =](\d{1,9})\s",
    "devices_per_node": r"--nproc_per_node[ =](\d{1,9})\s",
}
"""What PyTorch's launchers are given."""
_PARAMETERS = {
    "batch_size": r"PARAMETER .* batch_size : (\d{1,9})\s",
    "world_size": r"PARAMETER .* world_size : (\d{1,9})\s",
    "workload": r"PARAMETER .* arch : (\w{1,40})\s",
    "input": r"PARAMETER .* data_backend : (synthetic|syntetic)\s",
}
"""What NVIDIA's image classification says of its batch, its devices, its model and its data."""

RESNET50 = _format(
    name="ngc-pytorch-resnet50",
    marker=b" train.total_ips : ",
    pattern=r"DLL {DATE} - Epoch: {EPOCH} Iteration: {ITERATION}  train.loss : {NUMBER}  "
    r"train.total_ips : {RATE} img/s",
    facts=facts_by(**_PARAMETERS, **_NODES),
    unit="images/s",
    published=estimators.between_lines(20, 120, DATE, behind=5),
)
"""NVIDIA DeepLearningExamples' PyTorch ResNet-50 through DLLogger.

    DLL 2020-09-15 14:29:14.427490 - Epoch: 0 Iteration: 2  train.loss : 6.93504  train.total_ips : 4294.91 img/s

Source: github.com/NVIDIA/DeepLearningExamples at 5cc03caa,
PyTorch/Classification/ConvNets/image_classification/logger.py; DLPerf
NVIDIADeepLearningExamples/PyTorch/resnet50v1.5/extract_pytorch_logs_time.py.
"""

CLASSIFICATION = _format(
    name="ngc-pytorch-classification",
    pattern=r"DLL {DATE} - Epoch: {EPOCH} Iteration: {ITERATION}  train.loss : {NUMBER}"
    r"(?: None)?\s{1,2}train.compute_ips : {NUMBER} (?:img|images)/s "
    r"train.total_ips : {RATE} (?:img|images)/s",
    facts=facts_by(**_PARAMETERS),
    counts_from=0,
    unit="images/s",
    prints=Prints.BATCHES,
)
"""NVIDIA DeepLearningExamples' PyTorch image classification since 2021, through DLLogger.

    DLL 2021-12-20 03:31:31.158022 - Epoch: 0 Iteration: 2  train.loss : 5.82441  train.compute_ips : 5895.91 img/s train.total_ips : 5872.80 img/s train.lr : 0.1

Since 2022 the unit is `images/s`, and `None` stands where a loss has none. compute_ips leaves out the
time of the input; total_ips is that of all ranks. An iteration is a batch, also where gradients of
several are accumulated.

Source: github.com/NVIDIA/DeepLearningExamples,
PyTorch/Classification/ConvNets/image_classification/logger.py; logs in github.com/PaddlePaddle/Perf
at e7a07c4, ResNet50V1.5/OtherReports/PyTorch/logs.
"""

BERT = _format(
    name="ngc-pytorch-bert",
    pattern=r"DLL {DATE} - Training Epoch: \d{1,12} Training Iteration: {ITERATION}  "
    r"average_loss : {NUMBER}{END}(?:[^\r\n]{0,200} skipped_steps : {SKIPPED}{END})?",
    # Steps are optimizer steps. What the command calls train_batch_size is the batch of one step;
    # the script divides it by the accumulation before it prints its arguments.
    facts=facts_by(
        batch_size=(
            r"\bNamespace\([^\r\n]*[( ]train_batch_size=(\d{1,9})\b",
            r"PARAMETER batch_size_per_gpu : (\d{1,9})\s",
        ),
        update_batch=r"--train_batch_size[ =](\d{1,9})\s",
        accumulation=r"\bgradient_accumulation_steps[ =](\d{1,9})\b",
        **_NODES,
    ),
    unit="sentences/s",
    published=estimators.between_lines(20, 120, DATE, behind=5),
    prints=Prints.REPEATS | Prints.STEPS,
)
"""NVIDIA DeepLearningExamples' PyTorch BERT pretraining through DLLogger: no speed is printed.

    DLL 2020-09-17 03:24:01.456123 - Training Epoch: 0 Training Iteration: 30  average_loss : 10.9  step_loss : 10.8  learning_rate : 0.0006

Since 2021 the line also counts the steps that loss scaling has skipped: `skipped_steps : 8`.

Source: github.com/NVIDIA/DeepLearningExamples at 26c26761, PyTorch/LanguageModeling/BERT/utils.py;
DLPerf NVIDIADeepLearningExamples/PyTorch/BERT/extract_pytorch_logs_time.py with its README's flags.
"""


def _without_last_of_epoch(log_format: Format) -> Read:
    steps: dict[tuple[int, ...], int] = {}

    def read(match: re.Match[bytes], rank: tuple[int, ...]) -> Record | None:
        if match["steps"] is not None:
            steps[rank] = int(match["steps"])
            return None
        record = read_groups(log_format, match, rank)
        is_last = record is not None and steps.get(rank) and record.iteration % steps[rank] == 0
        return None if is_last else record

    return read


SQUAD = _format(
    name="ngc-pytorch-squad",
    marker=b"Iteration: ",
    signs=(b"  step_loss : ",),
    pattern=r"DLL {DATE} - Training Epoch: {EPOCH} Training Iteration: {ITERATION}  "
    r"step_loss : {NUMBER}{END}"
    r"|(?<!Training )\bIteration: {1,3}\d{1,3}%\|[^|\r\n]{0,1000}\| {0,12}\d{1,12}/"
    r"(?P<steps>\d{1,12}) \[",
    remembering=_without_last_of_epoch,
    # The arguments are printed before the script divides the batch by the accumulation.
    facts=facts_by(
        update_batch=r"\bNamespace\([^\r\n]*[( ]train_batch_size=(\d{1,9})\b",
        accumulation=r"\bgradient_accumulation_steps=(\d{1,9})\b",
        world_size=(
            r"\bn_gpu: (1), distributed training: False\b",
            # Without --nnodes, launchers start one node.
            r"(?: -m torch\.distributed\.launch|^torchrun|\ntorchrun) (?![^\r\n]*--nnodes)"
            r"[^\r\n]*--nproc_per_node[ =](\d{1,9})\s[^\r\n]*run_squad\.py",
        ),
        **_NODES,
    ),
    unit="sentences/s",
    prints=Prints.STEPS,
)
"""NVIDIA's PyTorch BERT on SQuAD through DLLogger: every fiftieth step of an epoch.

    DLL 2021-12-02 07:14:01.141880 - Training Epoch: 0 Training Iteration: 51  step_loss : 5.896368980407715  learning_rate : 0.0

Steps count through all epochs. The last one of an epoch may be a smaller batch: the progress bar tells
which it is, and its line is not taken. The sequences per second at the end are those of as many steps
as the command asks for, though the run may take fewer.

Source: github.com/NVIDIA/DeepLearningExamples, PyTorch/LanguageModeling/BERT/run_squad.py; logs in
github.com/lambdal/deeplearning-benchmark.
"""

MLPERF_BERT = _format(
    name="ngc-pytorch-mlperf-bert",
    pattern=r"\{'training_steps': \d{1,12}, 'average_loss': {NUMBER}, 'step_loss': {NUMBER}, "
    r"'learning_rate': {NUMBER}, 'seq/s': {RATE}, 'global_steps': {ITERATION}, "
    r"'samples_trained': {SAMPLES}, 'skipped_steps': {SKIPPED}, 'timestamp': "
    r"{UNIX}(?:, 'mlm_accuracy': {NUMBER})?\}",
    evaluates=rb"\{'global_steps': \d{1,12}, 'eval_loss': ",
    precedence=2,
    unit="sentences/s",
    prints=Prints.REPEATS,
)
"""NVIDIA's PyTorch BERT of MLPerf: a dictionary with a time stamp every so many steps.

    0: {'training_steps': 41724, 'average_loss': 1.42399, 'step_loss': 1.27441, 'learning_rate': 0.0002, 'seq/s': 373.4911217136396, 'global_steps': 6943, 'samples_trained': 1999584, 'skipped_steps': 11, 'timestamp': 1593158087.1865}

Training steps count batches; the iteration is the global step, one of the optimizer, which holds all
that it accumulates, as the global batch of the MLLOG lines does. A step that loss scaling skips is
none. Since v1.0 most submissions print no such lines.

Source: github.com/mlcommons/training_results_v0.7 at 0a8a85a,
NVIDIA/benchmarks/bert/implementations/pytorch/run_pretraining.py.
"""

GNN = _format(
    name="ngc-pytorch-gnn",
    pattern=r"DLL {DATE} - Iteration {ITERATION} \| train_acc : {NUMBER} % \| "
    r"iteration_time : {PACE_MS} ms \|",
    prints=Prints.BUSY_PACES,
)
"""NVIDIA's PyTorch graph network of MLPerf v4.0: lines with time stamps, through DLLogger.

    DLL 2024-05-14 23:15:31.277961 - Iteration 5471 | train_acc : 0.7090 % | iteration_time : 110.17 ms | train_loss : 0.8262

Source: logs in github.com/mlcommons/training_results_v4.0, benchmark gnn.
"""

TACOTRON2 = _format(
    name="ngc-pytorch-tacotron2",
    pattern=r"DLL {DATE} - \({EPOCH}, {ITERATION}\) train_iter_time : {PACE}{END}",
    facts=facts_by(
        batch_size=r"PARAMETER batch_size : (\d{1,9})\s",
        world_size=r"PARAMETER world_size : (\d{1,9})\s",
    ),
    counts_from=0,
    prints=Prints.BUSY_PACES,
)
"""NVIDIA's PyTorch Tacotron 2 and WaveGlow since 2020, through DLLogger.

    DLL 2020-11-05 18:19:21.830827 - (0, 3) train_iter_time : 1.2082513369996377

Rank 0 prints a line when an iteration has ended. Its time leaves out that of the input, so the stamps
tell the time. A sample is an utterance, or the part of one that WaveGlow learns from. What does not
fill a batch is left out.

Source: github.com/NVIDIA/DeepLearningExamples, PyTorch/SpeechSynthesis/Tacotron2/train.py; logs in
github.com/lambdal/deeplearning-benchmark.
"""


def _with_epoch_before(log_format: Format) -> Read:
    epochs: defaultdict[tuple[int, ...], int] = defaultdict(int)

    def read(match: re.Match[bytes], rank: tuple[int, ...]) -> Record | None:
        if match["epoch"] is not None:
            epochs[rank] = int(match["epoch"])
            return None
        record = read_groups(log_format, match, rank)
        return None if record is None else record._replace(epoch=epochs[rank])

    return read


_ARGUMENTS = r" Tacotron2_PyT [^\r\n]{1,300} args: [^\r\n]{0,4000}?"
TACOTRON2_NVLOG = _format(
    name="ngc-pytorch-tacotron2-nvlog",
    pattern=r":::NVLOGv[\d.]{1,9} Tacotron2_PyT {UNIX} \([^()\r\n]{1,300}\) "
    r"(?:train_epoch_start: {EPOCH}|train_iter_stop: {ITERATION}){END}",
    remembering=_with_epoch_before,
    facts=facts_by(
        batch_size=_ARGUMENTS + r'"batch_size": (\d{1,9})\b',
        world_size=_ARGUMENTS + r'"world_size": (\d{1,9})\b',
    ),
    counts_from=0,
)
"""NVIDIA's PyTorch Tacotron 2 and WaveGlow of 2019, which stamp the end of each iteration.

    :::NVLOGv0.2.2 Tacotron2_PyT 1583224677.666862488 (dllogger/logger.py:251) train_epoch_start: 0
    :::NVLOGv0.2.2 Tacotron2_PyT 1583224688.759857178 (dllogger/logger.py:251) train_iter_stop: 2

An iteration counts within its epoch, which its line does not name.

Source: github.com/NVIDIA/DeepLearningExamples, PyTorch/SpeechSynthesis/Tacotron2/train.py and
dllogger/logger.py; logs in github.com/lambdal/deeplearning-benchmark.
"""


def _every_batch(log_format: Format) -> Read:
    newest: dict[tuple[int, ...], Record] = {}
    seldom: set[tuple[int, ...]] = set()  # the ranks whose first line is not of the first epoch

    def read(match: re.Match[bytes], rank: tuple[int, ...]) -> Record | None:
        record, before = read_groups(log_format, match, rank), newest.get(rank)
        if record is None:
            return None
        newest[rank] = record
        if before is None and record.epoch > 1:
            seldom.add(rank)
        if rank in seldom and (before is None or before.epoch != record.epoch):
            return None
        place = (before.epoch, before.iteration + 1) if before is not None else None
        return record if place == (record.epoch, record.iteration) else record._replace(rate=None)

    return read


RNNT = _format(
    name="ngc-pytorch-rnnt",
    pattern=r"DLL {DATE} - epoch +{EPOCH} \| iter +{ITERATION}/{TOTAL} \| "
    r"loss +{NUMBER} \| utts/s +{RATE} \| took +{NUMBER} s \|",
    remembering=_every_batch,
    precedence=2,
    prints=Prints.STEPS,
)
"""NVIDIA's PyTorch RNN-T of MLPerf, and its speech recipes: every batch, through DLLogger.

    DLL 2021-05-19 10:29:45.136901 - epoch    7 | iter   92/272 | loss  119.38 | utts/s  3250 | took  0.32 s | lrate 4.00e-03

The speed is that of all ranks: one batch over the time since the previous line, however many batches
that holds, so that it is one only where every batch is printed. An iteration is a step of the optimizer, of as many
batches as are accumulated. Where MLLOG lines count, too (since v3.0), they are meant. Most logs of v1.1
and v2.0 print every thousandth batch, and so less than two an epoch: their MLLOG lines stamp epochs,
which `mlperf-passes` reads.

Source: github.com/mlcommons/training_results_v1.0, NVIDIA/benchmarks/rnnt; logs in the results of
v1.0, v2.0, v2.1 and v3.1.
"""

TRANSFORMER = _format(
    name="ngc-pytorch-transformer",
    signs=(b"num_updates", b" |walltime "),
    pattern=r"\| epoch {EPOCH}(?:(?:: +\d{1,12} / \d{1,12}| \|) loss[= ]{NUMBER}[^\r\n]{0,200}? "
    r"num_updates[= ]|(?= \| step \d[^\r\n]{0,200} \|walltime ) \| step ){ITERATION}\b",
    untimed="its batches hold as many sentences as fit, and no line says how many were trained on",
    unit="sentences/s",
)
"""fairseq's Transformer of 2018, in MLPerf until v1.0 and NVIDIA's examples: no count of sentences.

    | epoch 001:   1000 / 2184 loss=81194.557, nll_loss=0.000, ppl=1.00, wps=176776, ups=3.1, wpb=56091, bsz=485, num_updates=997, lr=0.000985036, .. wall=323
    | epoch 001 | loss 65192.095 | nll_loss 0.000 | ppl 1.00 | wps 176942 | ups 3.1 | wpb 56060 | bsz 487 | num_updates 2178 | lr 0.00189353 | .. | wall 696
    Transformer | epoch 0 | step 510 |avg loss 9.348 |avg tokens 141550.400 |tokens/s 381113.020 |walltime 202.526 |

A batch holds as many sentences as fit into a number of words. How many those were, only averages
since the epoch began tell, and the wall clock does not stop for a validation. The last line is
that of NVIDIA's DeepLearningExamples, whose means are those since the line before.

Source: github.com/mlcommons/training_results_v0.7 at 0a8a85a,
NVIDIA/benchmarks/transformer/implementations/pytorch/train.py; logs in github.com/PaddlePaddle/Perf
at e7a07c4, Transformer/OtherReports/PyTorch/logs.
"""

TRANSFORMERXL = _format(
    name="ngc-pytorch-transformerxl",
    pattern=r"\| epoch +{TURN} step +{ITERATION} \| batches +{BATCH} / {BATCHES} \| lr {NUMBER} \| "
    r"ms/batch +{MILLISECONDS} \| tok/s +{RATE} \| loss +{NUMBER} \| (?:ppl|bpc) +{NUMBER}{END}",
    facts=facts_by(
        global_batch=r"\bNamespace\([^\r\n]{0,4000}?\bbatch_size=(\d{1,9})\b",
        print_every=r"\bNamespace\([^\r\n]{0,8000}?\blog_interval=(\d{1,9})\b",
        sample_tokens=r"\bNamespace\([^\r\n]{0,8000}?\btgt_len=(\d{1,9})\b",
    ),
    rate_times=("samples_per_token",),
    prints=Prints.EVENLY,
)
"""NVIDIA's Transformer-XL: the mean time of a batch since the previous line.

    | epoch   1 step       70 | batches     70 / 11201 | lr 0.000e+00 | ms/batch 544.6 | tok/s   16921 | loss 12.56 | ppl 285223.53

Its batch size is that of all devices. Evaluations are left out of the means. A sample is a sequence of
as many tokens as its target length.

Source: github.com/NVIDIA/DeepLearningExamples, PyTorch/LanguageModeling/Transformer-XL/pytorch/
train.py; logs in github.com/lambdal/deeplearning-benchmark.
"""

GNMT = _format(
    name="ngc-pytorch-gnmt",
    pattern=r"TRAIN \[{EPOCH}\]\[{ITERATION}/{TOTAL}\]\s+Time {DURATION} \({NUMBER}\)\s+"
    r"Data {NUMBER} \({NUMBER}\)\s+Tok/s {NUMBER} \({NUMBER}\)\s+Loss/tok {NUMBER} ",
    remembering=durations_since(newest=1),
    untimed="its times are those of single batches, and not every batch is printed",
    counts_from=0,
    unit="sentences/s",
)
"""NVIDIA's PyTorch GNMT, as in MLPerf v0.7: the time of the batch that a line is printed for.

    0: TRAIN [3][1880/1885]\tTime 0.146 (0.143)\tData 2.28e-04 (3.20e-04)\tTok/s 99942 (96504)\tLoss/tok 3.0903 (3.1363)\tLR 7.000e-04

Batches count from 0. By default every tenth is printed, whose time says nothing about those between:
their sentences have other lengths.

Source: github.com/NVIDIA/DeepLearningExamples, PyTorch/Translation/GNMT/seq2seq/train/trainer.py;
logs in github.com/mlcommons/training_results_v0.7, benchmark gnmt.
"""

SSD = _format(
    name="ngc-pytorch-ssd",
    pattern=r"\bIteration: +{ITERATION}, Loss function: {NUMBER}, Average Loss: {NUMBER}, "
    r"avg\. samples / sec: {RATE}(?=\s)",
    counts_from=0,
    unit="images/s",
)
"""NVIDIA's PyTorch SSD of MLPerf until v1.1: speeds, but no times.

    Iteration:   3080, Loss function: 4.149, Average Loss: 4.224, avg. samples / sec: 4880.87

Rank 0 prints the speed of all ranks since its previous line. Iterations count from 0.

Source: github.com/mlcommons/training_results_v0.7 at 0a8a85a,
NVIDIA/benchmarks/ssd/implementations/pytorch/train.py.
"""

DLRM = _format(
    name="ngc-pytorch-dlrm",
    # What is between is of this iteration: a line that broke off may go on with another one's.
    pattern=r"Epoch:\[{EPOCH}/\d{1,9}\] \[ *{ITERATION}/{TOTAL}\]  eta: (?:(?!Epoch:)[^\r\n]){1,40}?  "
    r"loss: {NUMBER}  step_time: {MILLISECONDS} ms",
    counts_from=0,
    prints=Prints.EVENLY,
)
"""NVIDIA's PyTorch DLRM of MLPerf and DeepLearningExamples: the mean time of a step since a line.

    Epoch:[0/1] [1184/75869]  eta: 0:04:18  loss: 0.1346  step_time: 3.4589 ms  lr: 10.341818

A line follows each of a fixed number of steps. After an evaluation between two lines the time holds
fewer steps than it is divided by: windows that hold one are refused.

Source: github.com/mlcommons/training_results_v0.7 at 0a8a85a,
NVIDIA/benchmarks/dlrm/implementations/pytorch/scripts/dist_train.py.
"""
