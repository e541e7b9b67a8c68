"""HugeCTR's Wide & Deep: rank 0 prints the seconds of the iterations since its previous line.

    [HUGECTR][02:51:59][INFO][RANK0]: Iter: 200 Time(100 iters): 0.213347s Loss: 0.106469 lr:0.001000

Source: github.com/NVIDIA-Merlin/HugeCTR, HugeCTR/src/pybind/model.cpp; DLPerf
HugeCTR/wdl/tools/extract_hugectr_logs.py.
"""

from collections.abc import Sequence

from reperf.logs import estimators
from reperf.logs.facts import Facts
from reperf.logs.format import Estimate, Format, Record, facts_by

ARGUMENTS = facts_by(
    global_batch=(
        r"\bbatch_size = (\d{1,9})\s",
        r"\bTraining batchsize: (\d{1,9})\b",
    ),
    devices_per_node=r"\bgpu_num_per_node = (\d{1,9})\s",
    nodes=r"\bnum_nodes = (\d{1,9})\s",
)
"""The arguments that the Wide & Deep scripts print; their batch is that of all devices."""
_LEFT_OUT = 100


def _published(records: Sequence[Record], _facts: Facts) -> Estimate:
    """Milliseconds per iteration: the mean of the printed times except that of iteration 100."""
    lines = [one for one in records if one.iteration != _LEFT_OUT]
    estimators.enough(lines, 1)
    mean = sum(one.duration or 0.0 for one in lines) / len(lines)
    latency = round(1000 * mean / lines[0].span, 3)
    return Estimate(latency, _LEFT_OUT, lines[-1].iteration, unit="ms/iteration")


FORMAT = Format(
    name="hugectr-wide-deep",
    system="hugectr",
    marker=b"Time(",
    pattern=r"Iter: {ITERATION} Time\({SPAN} iters\): {DURATION}s Loss: {NUMBER}(?: lr:{NUMBER})?{END}",
    evaluates=rb"\bEval Time for \d|\bEvaluation, \w",
    facts=ARGUMENTS,
    published=_published,
    notes={
        "timing": "the seconds since the previous line",
        "extractor": "mean of the printed seconds without those of iteration 100, in ms per iteration",
    },
)
