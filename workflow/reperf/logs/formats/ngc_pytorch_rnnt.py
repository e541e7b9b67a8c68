"""NVIDIA's PyTorch RNN-T of MLPerf, and its speech recipes: every batch, through DLLogger.

    DLL 2021-05-19 10:29:45.136901 - epoch    7 | iter   92/272 | loss  119.38 | utts/s  3250 | took  0.32 s | lrate 4.00e-03

The speed is that of all ranks: one batch over the time since the previous line, however many batches
that holds, so that it is one only where every batch is printed. An iteration is a step of the optimizer, of as many batches as are
accumulated. Where MLLOG lines count, too (since v3.0), they are meant. Most logs of v1.1 and v2.0 print
every thousandth batch, and so less than two an epoch: their MLLOG lines stamp epochs, which
mlperf_passes.py reads.

Source: github.com/mlcommons/training_results_v1.0, NVIDIA/benchmarks/rnnt; logs in the results of
v1.0, v2.0, v2.1 and v3.1. No extractor was published.
"""

import re

from reperf.logs.format import Format, Read, Record, read_groups


def _remembering(log_format: Format) -> Read:
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


FORMAT = Format(
    name="ngc-pytorch-rnnt",
    system="ngc-pytorch",
    marker=b" | utts/s ",
    pattern=r"DLL {DATE} - epoch +{EPOCH} \| iter +{ITERATION}/{TOTAL} \| "
    r"loss +{NUMBER} \| utts/s +{RATE} \| took +{NUMBER} s \|",
    remembering=_remembering,
    accumulates=True,
    yields=2,
)
