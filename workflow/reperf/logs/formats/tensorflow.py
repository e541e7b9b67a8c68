"""Programs in TensorFlow 1 and 2, and Keras' own bar."""

import re
from collections.abc import Iterator

from reperf.logs import estimators
from reperf.logs.clock import DATE, TIME_OF_DAY, UNIX
from reperf.logs.facts import Fact
from reperf.logs.format import Format, Prints, Read, Record, facts_by, read_groups

_EVALUATES = rb"\] Running evaluation after step: | - val_loss: "
"""What they print when they evaluate: their own loop, and Keras."""
_ARGUMENTS = facts_by(global_batch=r"\b[Gg]lobal batch size: (\d{1,9})\s")
"""What the scripts of the official models print before they train."""

TENSORFLOW2_RESNET50 = Format(
    name="tensorflow2-resnet50",
    system="tensorflow2",
    pattern=r"I\d{4} {TIME_OF_DAY}\s+\d{1,20} \S{1,80}\] "
    r"TimeHistory: {NUMBER} seconds, {RATE} examples/second between steps \d{1,12} and {ITERATION}{END}",
    evaluates=_EVALUATES,
    facts=_ARGUMENTS,
    unit="images/s",
    # Six lines of 100 steps, the first left out.
    published=estimators.mean_speed(1, 6, estimators.printed_speed()),
)
"""TensorFlow 2's official models: the TimeHistory callback, here of ResNet-50.

    I0407 21:17:05.025709 139725706671936 keras_utils.py:145] TimeHistory: 6.46 seconds, 495.19 examples/second between steps 100 and 200

Source: github.com/tensorflow/models at r2.3.0, official/utils/misc/keras_utils.py; DLPerf
TensorFlow/resnet50v1.5/extract_tensorflow_logs.py.
"""

TENSORFLOW2_BERT = Format(
    name="tensorflow2-bert",
    system="tensorflow2",
    pattern=r"I\d{4} {TIME_OF_DAY}\s+\d{1,20} \S{1,80}\] "
    r"Train Step: {ITERATION}/{TOTAL}\s+/ loss = ",
    evaluates=_EVALUATES,
    facts=_ARGUMENTS,
    unit="sentences/s",
    published=estimators.between_lines(20, 120, TIME_OF_DAY),
)
"""TensorFlow 2's official models: the custom training loop, here of BERT. No speed is printed.

    I0904 12:01:02.123456 140012345678912 model_training_utils.py:450] Train Step: 20/120  / loss = 9.6

Source: github.com/tensorflow/models at r2.3.0, official/nlp/bert/model_training_utils.py; DLPerf
TensorFlow/bert/extract_tensorflow_logs_time.py.
"""

NGC_TENSORFLOW1_RESNET50 = Format(
    name="ngc-tensorflow1-resnet50",
    system="ngc-tensorflow1",
    pattern=r"DLL {DATE} - \({EPOCH}, {ITERATION}\) (?:imgs_per_sec|total_ips) : {RATE}{END}",
    facts=facts_by(
        batch_size=(r"PARAMETER .* batch_size : (\d{1,9})\s", r"\bPer-GPU Batch Size (\d{1,9})\s"),
        world_size=r"\bNum GPUs (\d{1,9})\s",
    ),
    counts_from=0,
    unit="images/s",
    # The script itself leaves out the first 20 steps: these are the next hundred.
    published=estimators.mean_speed(0, 100, estimators.printed_speed(2)),
)
"""NVIDIA DeepLearningExamples' TensorFlow 1 ResNet-50 through DLLogger, steps from 0.

    DLL 2020-09-01 06:41:11.984949 - (3, 16135) imgs_per_sec : 1146.8574254443538  cross_entropy : ..
    DLL 2020-12-16 07:32:45.552431 - (0, 200) total_ips : 3092.8527524438764

The first is training, the second its benchmark mode. The printed speed leaves out the time between
two session runs.

Source: github.com/NVIDIA/DeepLearningExamples at fed7ba99,
TensorFlow/Classification/ConvNets/utils/hooks; DLPerf
NVIDIADeepLearningExamples/TensorFlow/Classification/ConvNets/resnet50v1.5/extract_tensorflow_logs.py.
"""

NGC_TENSORFLOW1_BERT = Format(
    name="ngc-tensorflow1-bert",
    system="ngc-tensorflow1",
    pattern=r"DLL {DATE} - Iteration: {ITERATION}  (?:Rank : \d{1,6}\s+)?"
    r"throughput_train : {RATE} (?:seq|sequences)/s",
    facts=facts_by(
        batch_size=(r"--train_batch_size[ =](\d{1,9})\s", r"\btrain_batch_size: (\d{1,9})\s"),
        accumulation=(
            r"--num_accumulation_steps[ =](\d{1,9})\s",
            r"\bnum_accumulation_steps: (\d{1,9})\s",
        ),
        world_size=r"\bhvd\.size\(\) = (\d{1,9})\b",
    ),
    unit="sentences/s",
    published=estimators.between_iterations(20, 120, DATE),
    prints=Prints.REPEATS,
)
"""NVIDIA DeepLearningExamples' TensorFlow 1 BERT pretraining through DLLogger.

    DLL 2020-12-17 06:44:17.497577 - Iteration: 50  throughput_train : 142.676 seq/s mlm_loss : 10.2346  ..

Source: github.com/NVIDIA/DeepLearningExamples at fed7ba99,
TensorFlow/LanguageModeling/BERT/run_pretraining.py; DLPerf
NVIDIADeepLearningExamples/TensorFlow/LanguageModeling/BERT/extract_tensorflow_logs_time.py.
"""

_BATCH = facts_by(
    global_batch=r"\bBatch size: +(\d{1,9}) global\s", batch_size=r"\s(\d{1,9}) per device\s"
)
_MODEL = re.compile(rb"(?m)^(?:INFO.*\|\d+\| ?)?Model: +([\w.]{1,40})\s")
_CALLED = {b"resnet50_v1.5": "resnet50", b"resnet50": "resnet50_v1"}
"""The two that tf_cnn_benchmarks tells apart."""
_SYNTHETIC = re.compile(rb"\bDataset: +\w{1,40} \(synthetic\)\s")
_FORWARD = re.compile(rb"\bMode: +(?:forward.only|evaluation)\b")


def _facts(head: bytes) -> Iterator[Fact]:
    yield from _BATCH(head)
    for match in _MODEL.finditer(head):
        yield "workload", _CALLED.get(match[1], match[1].decode())
    if _SYNTHETIC.search(head):
        yield "input", "synthetic"
    if _FORWARD.search(head):
        yield "forward_only", True


def _read(match: re.Match[bytes], rank: tuple[int, ...]) -> Record | None:
    record = read_groups(TF_CNN_BENCHMARKS, match, rank)
    if record is None or record.time is not None or match["unix"] is None:
        return record
    return record._replace(time=UNIX.seconds(match["unix"].decode()), tick=1.0)


TF_CNN_BENCHMARKS = Format(
    name="tf-cnn-benchmarks",
    system="tensorflow1",
    pattern=r"(?:\bINFO\|{DATE}\|[^|\r\n]{1,200}\|\d{1,9}\| ?|(?<![^\s:]))"
    r"{ITERATION}\s{1,12}images/sec: \d{1,9}\.\d{1,3} \+/- {NUMBER} "
    r"\(jitter = {NUMBER}\)\s"
    r"(?:[^\r\n]{0,200}?[ \t](?P<unix>\d{10})(?=[\r\n]))?",
    read=_read,
    facts=_facts,
    evaluates=rb"\bRunning evaluation at global_step \d|\bAccuracy @ 1 = ",
    unit="images/s",
)
"""TensorFlow 1's benchmarks, tf_cnn_benchmarks.py: mean speeds of one process, and seldom a time.

    10	images/sec: 133.7 +/- 0.9 (jitter = 1.0)	8.152
    INFO|2020-05-19T07:21:15|/opt/launcher.py|27| 10	images/sec: 31.1 +/- 0.4 (jitter = 0.7)	8.343
    10	images/sec: 323.5 +/- 0.7 (jitter = 2.9)	8.779 1604275069

The second is what Kubeflow's launcher makes of it; the third is that of versions since 2020. Both
clocks are of whole seconds. Ten steps of warm-up come before the first. A speed is the mean of all
steps so far, and is not read.

Source: github.com/tensorflow/benchmarks, scripts/tf_cnn_benchmarks/benchmark_cnn.py; lines as in
public documentation of trainings; logs in github.com/lambdal/lambda-tensorflow-benchmark.
"""

_FULL = (
    r"(?P<count>\d{1,12})/(?P<total>\d{1,12})"
    r"(?: (?P<bar>\[=+\]) - | (?:━)+ | - )(?P<duration>\d{1,9})s"
    r"(?:(?: -)? \d{1,9}[mun]?s/(?P<of>step|sample|epoch))? - "
)


def _epochs(_format: Format) -> Read:
    epochs: dict[tuple[int, ...], int] = {}

    def read(match: re.Match[bytes], rank: tuple[int, ...]) -> Record | None:
        if match["epoch"] is not None:
            epochs[rank] = int(match["epoch"])
            return None
        if rank not in epochs or match["count"] != match["total"]:
            return None
        timed = b" - val_" not in match["metrics"]
        samples = int(match["total"]) if match["bar"] and match["of"] == b"sample" else 0
        return Record(
            iteration=epochs[rank],
            rank=rank,
            duration=float(match["duration"]) if timed else None,
            tick=1.0,
            text=match[0],
            facts=(("epoch_samples", samples),) if samples else (),
        )

    return read


KERAS = Format(
    name="keras",
    marker=b"/",
    signs=(b"=] - ", b"/step - ", b"s - loss: "),
    pattern=r"\bEpoch (?P<epoch>\d{1,9})/\d{1,9}(?=[ \t]{0,9}[\r\n])"
    rf"|{_FULL}(?P<metrics>(?:\w[^\r\n\x08]{{0,200}} - )?loss: [^\r\n\x08]{{1,800}})(?=[\r\n])",
    remembering=_epochs,
    step_is=("epoch_samples",),
    untimed="the seconds that it prints for an epoch include its validation",
    precedence=3,
    prints=Prints.IN_TWO_LINES,
)
"""Keras' fit: the whole seconds of each epoch.

    60000/60000 [==============================] - 112s 2ms/sample - loss: 0.2911 - accuracy: 0.9153
    1875/1875 [==============================] - 92s 49ms/step - loss: 0.2911 - accuracy: 0.9153 - val_loss: 0.1392
    1875/1875 ━━━━━━━━━━━━━━━━━━━━ 92s 49ms/step - accuracy: 0.9153 - loss: 0.2911
    1875/1875 - 92s - loss: 0.2911 - accuracy: 0.9153 - 92s/epoch - 49ms/step
    1875/1875 - 92s - 49ms/step - accuracy: 0.9153 - loss: 0.2911

The first two are Keras 2's bars, the third Keras 3's, in colours; the last two are what `verbose=2`
prints. An iteration here is an epoch. Where its count is one of samples, it says how many they are; a
count of steps does not, nor whether it is one, for some versions name samples so. With a validation,
the seconds are those of both. Keras 3 draws a full bar before the last one, too, whose seconds are
those that are left: backspaces follow it.

Source: github.com/keras-team/keras, keras/utils/generic_utils.py and keras/src/utils/progbar.py;
runs of tf-keras 2.21 and Keras 3.15.
"""
