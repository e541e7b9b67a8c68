"""LitGPT's finetuning: the time of every iteration, which is a batch of each device.

    Epoch 1 | iter 2 step 1 | loss train: 1.660, val: n/a | iter time: 548.72 ms (step)

An iteration is one of the batches that a step of the optimizer accumulates. Its time holds the loading
of its batch, but no validation. The lines of pretraining, which tell the remaining time, are recognised
and tell no time: theirs leave out the loading, and are those of the last batch of a step.

Source: github.com/Lightning-AI/litgpt, litgpt/finetune/lora.py and litgpt/pretrain.py; lines as in its
tutorials and in its issue 1607. No extractor was published.
"""

import re
from collections.abc import Iterator

from reperf.logs.averages import durations_since
from reperf.logs.facts import Fact
from reperf.logs.format import Format, facts_by, marked

_BATCH = facts_by(
    batch_size=r"\bmicro_batch_size=(\d{1,9})\b",
    nodes=r"'num_nodes': (\d{1,6})\b",
)
_DEVICES = re.compile(rb"'devices': (\d{1,4})\b")


@marked(*_BATCH.marks, b"'devices': ")
def _facts(head: bytes) -> Iterator[Fact]:
    yield from _BATCH(head)
    for match in _DEVICES.finditer(head):
        # Without a number of nodes, older versions train on one.
        if devices := int(match[1]):
            yield "devices_per_node" if b"'num_nodes': " in head else "world_size", devices


FORMAT = Format(
    name="litgpt",
    system="litgpt",
    marker=b" | iter time: ",
    pattern=r"\bEpoch \d{1,9} \| iter +{ITERATION} step \d{1,12} \| loss train: +{NUMBER}"
    r"(?:, val: +[-+.\w/]{1,40})? \| iter time: (?:{MILLISECONDS} ms(?: \(step\))?(?! \(step\)| remaining time)"
    r"|{NUMBER} ms(?: \(step\))? remaining time: [^\r\n]{1,40}){END}",
    remembering=durations_since(newest=1),
    facts=_facts,
    untimed="its times leave out the loading of data, or are those of single batches of which not every "
    "one is printed",
    notes={"timing": "the time of each batch, in finetuning"},
)
