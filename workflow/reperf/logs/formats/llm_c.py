"""llm.c: the time of every step of the optimizer, without validations, samples and checkpoints.

    step    1/10 | loss 11.032358 (+nanz)| norm 22.1414 (+nanz)| lr 8.57e-07 | 2575.63 ms | 39.0% bf16 MFU | 203557 tok/s

The tokens a second are those of all devices, as a moving average. The program prints its batch, the
length of a sequence, the number of processes and how many batches it accumulates.

Source: github.com/karpathy/llm.c, train_gpt2.cu; lines as in its discussion 677 and in the READMEs of
its forks. No extractor was published.
"""

import re
from collections.abc import Iterator

from reperf.logs.facts import Fact
from reperf.logs.format import Format, facts_by, marked

_BATCHES = re.compile(
    rb"\bbatch_size B=(?P<batch>\d{1,9}) \* seq_len T=(?P<length>\d{1,9}) \* "
    rb"num_processes=(?P<processes>\d{1,9}) and total_batch_size=(?P<tokens>\d{1,15})\s"
)
_ACCUMULATION = facts_by(accumulation=r"=> setting grad_accum_steps=(\d{1,9})\s")


@marked(b"batch_size B=", *_ACCUMULATION.marks)
def _facts(head: bytes) -> Iterator[Fact]:
    yield from _ACCUMULATION(head)
    for match in _BATCHES.finditer(head):
        batch, length, processes, tokens = map(int, match.groups())
        if not length or not batch or not processes or tokens % length:
            continue
        yield "batch_size", batch
        yield "world_size", processes
        yield "sample_tokens", length
        yield "samples_per_token", 1 / length
        yield "global_batch", tokens // length or None


FORMAT = Format(
    name="llm-c",
    system="llm-c",
    marker=b" tok/s",
    pattern=r"\bstep +{ITERATION}/{TOTAL} \| loss {NUMBER} \({NUMBER}\)\| norm {NUMBER} \({NUMBER}\)\| "
    r"lr {NUMBER} \| {MILLISECONDS} ms \| [^|\r\n]{1,40} MFU \| {RATE} tok/s{END}",
    facts=_facts,
    rate_times=("samples_per_token",),
    accumulates=True,
    notes={"timing": "the time of each step", "speed_of": "all, in tokens"},
)
