"""NVIDIA's Transformer-XL: the mean time of a batch since the previous line.

    | epoch   1 step       70 | batches     70 / 11201 | lr 0.000e+00 | ms/batch 544.6 | tok/s   16921 | loss 12.56 | ppl 285223.53

Its batch size is that of all devices. Evaluations are left out of the means. A sample is a sequence of
as many tokens as its target length.

Source: github.com/NVIDIA/DeepLearningExamples, PyTorch/LanguageModeling/Transformer-XL/pytorch/
train.py; logs in github.com/lambdal/deeplearning-benchmark. No extractor was published.
"""

from collections.abc import Iterator

from reperf.logs.averages import durations_since
from reperf.logs.facts import Fact
from reperf.logs.format import Format, Prints, facts_by, marked

_ARGUMENTS = facts_by(
    global_batch=r"\bNamespace\([^\r\n]{0,4000}?\bbatch_size=(\d{1,9})\b",
    print_every=r"\bNamespace\([^\r\n]{0,8000}?\blog_interval=(\d{1,9})\b",
)
_LENGTH = facts_by(sample_tokens=r"\bNamespace\([^\r\n]{0,8000}?\btgt_len=(\d{1,9})\b")


@marked(*_ARGUMENTS.marks, *_LENGTH.marks)
def _facts(head: bytes) -> Iterator[Fact]:
    yield from _ARGUMENTS(head)
    for name, tokens in _LENGTH(head):
        yield name, tokens
        yield "samples_per_token", 1 / tokens


FORMAT = Format(
    name="ngc-pytorch-transformerxl",
    system="ngc-pytorch",
    marker=b" | ms/batch ",
    pattern=r"\| epoch +{TURN} step +{ITERATION} \| batches +{BATCH} / {BATCHES} \| lr {NUMBER} \| "
    r"ms/batch +{MILLISECONDS} \| tok/s +{RATE} \| loss +{NUMBER} \| (?:ppl|bpc) +{NUMBER}{END}",
    remembering=durations_since(),
    facts=_facts,
    rate_times=("samples_per_token",),
    prints=Prints.EVENLY,
    notes={
        "timing": "the mean time of an iteration since the previous line",
        "speed_of": "all, in tokens",
    },
)
