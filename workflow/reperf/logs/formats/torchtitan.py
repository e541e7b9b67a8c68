"""torchtitan: lines with time stamps, of steps of the optimizer.

    [rank0]:[titan] 2025-06-04 08:52:10,224 - root - INFO - step: 20  loss:  8.9196  memory: 30.99GiB(32.62%)  tps: 7,022  tflops: 406.65  mfu: 41.12%

It prints step 1, and then every so many. A step holds all that it accumulates, as the global batch
does that the trainer prints at its start (since 2025). tps counts tokens since the line before, of one
device: with the sequences' length and the mesh of devices, it checks the stamps.

Source: github.com/pytorch/torchtitan at 00fbaaf, torchtitan/components/metrics.py; lines as in
PyTorch's and AMD's documentation. No extractor was published.
"""

import re
from collections.abc import Iterator
from math import prod

from reperf.logs.facts import Fact
from reperf.logs.format import Format, Record, facts_by, marked, read_groups

_BATCH = facts_by(
    global_batch=r"local batch size \d{1,9}, global batch size (\d{1,9}),",
)
_LENGTH = facts_by(sample_tokens=r", global batch size [^\r\n]{1,80}, sequence length (\d{1,9}),")
_MESH = re.compile(
    rb"\bBuilding (?:\d-D device mesh with \[[^\]\r\n]{1,200}\], \[(?P<sizes>[\d, ]{1,99})\]"
    rb"|device mesh with parallelism: (?P<named>pp=\d{1,9}, dp_replicate=\d{1,9}, "
    rb"dp_shard=\d{1,9}, cp=\d{1,9}, tp=\d{1,9}),)"
)


@marked(*_BATCH.marks, b"Building ")
def _facts(head: bytes) -> Iterator[Fact]:
    yield from _BATCH(head)
    for _, tokens in _LENGTH(head):
        yield "sample_tokens", tokens
        yield "samples_per_token", 1 / tokens
    for match in _MESH.finditer(head):
        yield "world_size", prod(map(int, re.findall(rb"\d+", match["sizes"] or match["named"])))


def _read(match: re.Match[bytes], rank: tuple[int, ...]) -> Record | None:
    record = read_groups(FORMAT, match, rank)
    if record is None or match["tokens"] is None:
        return record
    return record._replace(rate=float(match["tokens"].replace(b",", b"")) or None)


FORMAT = Format(
    name="torchtitan",
    system="torchtitan",
    marker=b"GiB(",
    pattern=r"\[titan\] {DATE} - \w{1,40} - INFO - step: *{ITERATION} +"
    r"loss: *{NUMBER} [^\r\n]{0,200}?memory: *{NUMBER}GiB\({NUMBER}%\)  (?:tps: *(?P<tokens>\d[\d,]{0,18})\s)?",
    evaluates=rb" - INFO - validate step: ",
    read=_read,
    facts=_facts,
    rate_times=("world_size", "samples_per_token"),
    accumulates=True,
    notes={"speed_of": "one, in tokens"},
)
