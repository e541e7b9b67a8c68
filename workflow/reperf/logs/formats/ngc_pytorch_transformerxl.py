"""NVIDIA's Transformer-XL: the mean time of a batch since the previous line.

    | epoch   1 step       70 | batches     70 / 11201 | lr 0.000e+00 | ms/batch 544.6 | tok/s   16921 | loss 12.56 | ppl 285223.53

Its batch size is that of all devices. Evaluations are left out of the means. A sample is a sequence of
as many tokens as its target length.

Source: github.com/NVIDIA/DeepLearningExamples, PyTorch/LanguageModeling/Transformer-XL/pytorch/
train.py; logs in github.com/lambdal/deeplearning-benchmark. No extractor was published.
"""

import re
from collections import defaultdict
from collections.abc import Iterator

from reperf.logs.averages import Spans
from reperf.logs.facts import Fact
from reperf.logs.format import Format, Read, Record, facts_by, marked

_ARGUMENTS = facts_by(global_batch=r"\bNamespace\([^\r\n]{0,4000}?\bbatch_size=(\d{1,9})\b")
_LENGTH = facts_by(tokens=r"\bNamespace\([^\r\n]{0,8000}?\btgt_len=(\d{1,9})\b")


@marked(*_ARGUMENTS.marks, *_LENGTH.marks)
def _facts(head: bytes) -> Iterator[Fact]:
    yield from _ARGUMENTS(head)
    for _, tokens in _LENGTH(head):
        yield "samples_per_token", 1 / tokens


def _remembering(_format: Format) -> Read:
    spans: defaultdict[tuple[int, ...], Spans] = defaultdict(Spans)

    def read(match: re.Match[bytes], rank: tuple[int, ...]) -> Record | None:
        iteration = int(match["iteration"])
        # Of the first line a mean tells the time of the last iteration, at least.
        since = spans[rank].of(iteration)
        span = 1 if since is None else since
        return Record(
            iteration=iteration,
            rank=rank,
            duration=float(match["duration"]) * span / 1000,
            span=span,
            tick=span * 1e-4,
            rate=float(match["rate"]),
            text=match[0],
        )

    return read


FORMAT = Format(
    name="ngc-pytorch-transformerxl",
    system="ngc-pytorch",
    marker=b" | ms/batch ",
    pattern=r"\| epoch +\d{1,9} step +{ITERATION} \| batches +\d{1,12} / \d{1,12} \| lr {NUMBER} \| "
    r"ms/batch +{DURATION} \| tok/s +{RATE} \| loss +{NUMBER} \| (?:ppl|bpc) +{NUMBER}{END}",
    remembering=_remembering,
    facts=_facts,
    rate_times=("samples_per_token",),
    evenly=True,
    timing="the mean time of an iteration since the previous line",
    speed_of="all, in tokens",
)
