"""nanoGPT: the time of the iteration that a line is printed for.

    iter 2920: loss 3.9883, time 1099.34ms, mfu 15.34%

Iterations count from 0. Each is a step of the optimizer, and its time holds the evaluation before it.
By default every tenth is printed, whose time says nothing about those between: `--log_interval=1`
prints them all. The program prints how many tokens an iteration trains, and, where it is not the
default, the length of a sequence: the last that it prints is the one in use.

Source: github.com/karpathy/nanoGPT, train.py and configurator.py; lines as in its issues 110 and 215.
No extractor was published.
"""

import re
from collections.abc import Iterator

from reperf.logs.averages import durations_since
from reperf.logs.facts import Fact
from reperf.logs.format import Format, marked

_TOKENS = re.compile(rb"\btokens per iteration will be: (\d[\d,]{0,15})\s")
_LENGTH = re.compile(rb"(?<!#)(?<!# )\bblock_size = (\d{1,9})\s")


@marked(b"tokens per iteration will be: ", b"block_size = ")
def _facts(head: bytes) -> Iterator[Fact]:
    lengths = [int(match[1]) for match in _LENGTH.finditer(head)]
    if not lengths or not lengths[-1]:
        return
    yield "sample_tokens", lengths[-1]
    for match in _TOKENS.finditer(head):
        sequences, rest = divmod(int(match[1].replace(b",", b"")), lengths[-1])
        if sequences and not rest:
            yield "global_batch", sequences


FORMAT = Format(
    name="nanogpt",
    system="nanogpt",
    marker=b": loss ",
    pattern=r"\biter {ITERATION}: loss {NUMBER}, time {MILLISECONDS}ms(?:, mfu {NUMBER}%)?{END}",
    remembering=durations_since(newest=1),
    facts=_facts,
    # The time of the iteration behind it holds it.
    evaluates=rb"\bstep \d{1,12}: train loss ",
    untimed="its times are those of single iterations, and not every iteration is printed",
    counts_from=0,
    accumulates=True,
    notes={"timing": "the time of each iteration"},
)
