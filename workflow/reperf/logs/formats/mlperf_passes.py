"""Logs of MLPerf Training that stamp the starts of epochs, or of blocks of epochs, and no steps.

    :::MLLOG {"time_ms": 1684387859532, "event_type": "INTERVAL_START", "key": "block_start", "value": null, "metadata": {"first_epoch_num": 4, "epoch_count": 4, ..}}

An iteration here is an epoch. That of resnet, ssd (retinanet), unet3d, maskrcnn, rnnt and HPC's cosmoflow
is a pass over the samples that another event says; what bert, gpt3 and dlrm call an epoch are samples,
tokens or anything else, and is not read. Whatever stands behind a start that counts back is not training.
The throughputs that some print are checked.

Source: github.com/mlcommons/training_results_v1.0 to v3.0, submissions of NVIDIA (rnnt), Habana, Google,
Graphcore and Intel; hpc_results_v2.0, Fujitsu's cosmoflow. No extractor was published.
"""

import re
from math import fsum, inf

from reperf.logs.clock import MILLISECONDS
from reperf.logs.events import MARK, event_of, has_ended, is_number
from reperf.logs.format import Format, Read, Record
from reperf.logs.formats.mlperf import facts_of_epochs

_IN_PASSES = ("resnet", "ssd", "retinanet", "unet3d", "maskrcnn", "rnnt", "cosmoflow")
_MOST_EPOCHS = 10_000
"""Higher counts are of samples, as unet3d's since v4.0."""
_STARTS = {"block_start": "first_epoch_num", "epoch_start": "epoch_num"}


def _remembering(_format: Format) -> Read:
    benchmark: object = None
    first: dict[tuple[int, ...], int] = {}  # of each rank, the number of the first epoch
    newest: dict[tuple[int, ...], tuple[float, object]] = {}  # epochs trained, and by which event
    rates: list[float] = []

    def read(match: re.Match[bytes], rank: tuple[int, ...]) -> Record | None:
        nonlocal benchmark
        event = event_of(match[0])
        key, value, metadata = event.get("key"), event.get("value"), event.get("metadata")
        if key == "submission_benchmark":
            benchmark = value
            first.clear()
            newest.clear()
        elif key == "throughput" and is_number(value):
            rates.append(value)
        if key not in _STARTS or not isinstance(metadata, dict) or benchmark not in _IN_PASSES:
            return None
        epoch, time = metadata.get(_STARTS[key]), event.get("time_ms")
        if not is_number(epoch) or epoch != int(epoch) or not is_number(time):
            return None
        begin = first.setdefault(rank, int(epoch))
        before, by = newest.get(rank, (0, None))
        passed = int(epoch) - begin
        if begin not in (0, 1) or epoch > _MOST_EPOCHS or passed < before:
            newest[rank] = inf, key  # until another run begins
            return None
        if passed == before and by not in (None, key):
            return None  # a block and its first epoch
        newest[rank] = passed, key
        rate = fsum(rates) / len(rates) if rates else None
        rates.clear()
        return Record(passed, rank=rank, time=time / 1000, tick=0.001, rate=rate, text=match[0])

    return read


FORMAT = Format(
    name="mlperf-passes",
    system="mlperf",
    marker=MARK,
    pattern=r':::MLLOG \{[^\r\n]{0,300}?"key": ?"(?:submission_benchmark|throughput|block_start'
    r'|epoch_start)"[^\r\n]{0,2000}\}{END}',
    clock=MILLISECONDS,
    remembering=_remembering,
    runs_ahead=True,
    evaluates=rb'"key": ?"eval_accuracy"',
    step_is=("epoch_samples", "epoch_trained", "epoch_batches"),
    facts=facts_of_epochs,
    ended=has_ended,
    yields=4,
    counting="1: an iteration is an epoch",
    speed_of="all",
)
