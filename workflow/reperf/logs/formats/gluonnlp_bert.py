"""gluon-nlp's BERT pretraining of 2019: the seconds since the previous line.

    INFO:root:[step 499]	mlm_loss=8.19401	mlm_acc=6.20519	nsp_loss=0.68434	nsp_acc=55.795	throughput=124.0K tks/s	lr=0.0000050 time=108.43

It prints one step before each multiple of the interval. A step of the optimizer holds `accumulate`
batches of each device. Later versions print the latency of a batch, too: see mxnet_bert.py.

Source: github.com/dmlc/gluon-nlp at 1251d05, scripts/bert/run_pretraining.py; log in
github.com/dmlc/web-data at 0818ee5, gluonnlp/logs/bert/bert_base_pretrain.log. No extractor was
published.
"""

import re
from collections.abc import Iterator

from reperf.logs.averages import durations_since
from reperf.logs.facts import Fact
from reperf.logs.format import Format, Prints, facts_by, marked

# One process on one machine; of several, the arguments do not say how many there are.
_ARGUMENTS = re.compile(
    rb"Namespace\(accumulate=(\d{1,9}), batch_size=(\d{1,9}),"
    rb".{0,2000}\bgpus='([\d,]{1,200})', kvstore='(?:device|local)\w{0,20}'"
)
_INTERVAL = facts_by(print_every=r"Namespace\(accumulate=.{0,2000}\blog_interval=(\d{1,9})\b")


@marked(b"Namespace(accumulate=")
def _facts(head: bytes) -> Iterator[Fact]:
    for accumulate, batch, devices in _ARGUMENTS.findall(head):
        yield "accumulation", int(accumulate) or None
        yield "batch_size", int(batch) or None
        yield "world_size", len(devices.split(b","))
    yield from _INTERVAL(head)


FORMAT = Format(
    name="gluonnlp-bert",
    system="mxnet",
    marker=b"K tks/s",
    pattern=r"\[step {ITERATION}\]\s+(?:\w{1,20}=\s*{NUMBER}\s+){2,4}throughput={NUMBER} tks/s\s+"
    r"lr={NUMBER} time={DURATION}(?=\s)",
    remembering=durations_since(of_all=True, before=1),
    facts=_facts,
    counts_from=0,  # as its counter starts; the first step is 1
    accumulates=True,
    unit="sentences/s",
    prints=Prints.EVENLY,
    notes={"counting": "1", "timing": "the seconds since the previous line"},
)
