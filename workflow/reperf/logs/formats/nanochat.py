"""nanochat: the time of every step of the optimizer, without evaluations, samples and checkpoints.

    step 00001/21400 (0.00%) | loss: 10.808654 | lrm: 1.00 | dt: 649.22ms | tok/sec: 807,569 | mfu: 35.64 | total time: 0.00m

Steps count from 0. The tokens a second are those of all devices. The program prints the length of a
sequence, the batch of a device and of all, in tokens, and how many batches it accumulates.

Source: github.com/karpathy/nanochat, scripts/base_train.py; lines as in its discussion 1. No extractor
was published.
"""

import re
from collections.abc import Iterator

from reperf.logs.facts import Fact
from reperf.logs.format import Format, Record, marked, read_groups

_COUNT = rb"(\d[\d,]{0,18})"
_RANK = re.compile(rb"\bTokens / micro-batch / rank: (\d{1,9}) x (\d{1,9}) = " + _COUNT + rb"\s")
_ALL = re.compile(rb"\bTokens / micro-batch: " + _COUNT + rb"\s")
_STEP = re.compile(
    rb"\bTotal batch size " + _COUNT + rb" => gradient accumulation steps: (\d{1,9})\s"
)


def _number(written: bytes) -> int:
    return int(written.replace(b",", b""))


@marked(b"Tokens / micro-batch", b"Total batch size ")
def _facts(head: bytes) -> Iterator[Fact]:
    for rank in _RANK.finditer(head):
        batch, length = int(rank[1]), int(rank[2])
        if not batch or not length:
            continue
        yield "batch_size", batch
        yield "sample_tokens", length
        yield "samples_per_token", 1 / length
        for everyone in _ALL.finditer(head):
            if not _number(everyone[1]) % (batch * length):
                yield "world_size", _number(everyone[1]) // (batch * length) or None
        for step in _STEP.finditer(head):
            if not _number(step[1]) % length:
                yield "global_batch", _number(step[1]) // length or None
                yield "accumulation", int(step[2]) or None


def _read(match: re.Match[bytes], rank: tuple[int, ...]) -> Record | None:
    record = read_groups(FORMAT, match, rank)
    return record and record._replace(rate=float(_number(match["tokens"])) or None)


FORMAT = Format(
    name="nanochat",
    system="nanochat",
    marker=b" | tok/sec: ",
    pattern=r"\bstep {ITERATION}(?:/{TOTAL})? \({NUMBER}%\) \| loss: {NUMBER} \| lrm: {NUMBER} \| "
    r"dt: {MILLISECONDS}ms \| tok/sec: (?P<tokens>\d[\d,]{0,18}) \| (?:bf16_)?mfu: {NUMBER}{END}",
    read=_read,
    facts=_facts,
    rate_times=("samples_per_token",),
    counts_from=0,
    accumulates=True,
    notes={"timing": "the time of each step", "speed_of": "all, in tokens"},
)
