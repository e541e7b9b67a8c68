"""OLMo's first trainer: a line with a time stamp and the step, then lines of what it measured.

    2024-08-06 10:00:05.520 host:0  olmo.train:908  INFO    [step=2/739328,epoch=0]
    throughput/total_tokens=2,097,152
    [2024-04-17 09:42:38] INFO     [olmo.train:816, rank=0] [step=2/739328]

Steps are those of the optimizer. The tokens are those that all devices have trained on so far; the
batch in sequences no line says. OLMo-core, which came later, stamps its lines when it gathers what
several steps measured: these are not read.

Source: github.com/allenai/OLMo, olmo/train.py; lines as in its issue 692 and in public notes of a
training on two nodes. No extractor was published.
"""

import re
from collections import defaultdict

from reperf.logs.format import Format, Read, Record, counts_by, read_groups


def _remembering(log_format: Format) -> Read:
    waiting: defaultdict[tuple[int, ...], list[Record]] = defaultdict(list)

    def read(match: re.Match[bytes], rank: tuple[int, ...]) -> Record | None:
        if match["tokens"] is None:
            record = read_groups(log_format, match, rank)
            if record is not None:
                waiting[rank] = [*waiting[rank][-1:], record]
            return None
        if not waiting[rank]:
            return None
        *lost, record = waiting.pop(rank)
        fault = record.fault
        if lost:
            fault = fault or (
                f"the tokens of step {lost[-1].iteration} do not follow its line: the lines of several "
                "ranks are mixed without labels, or some are lost"
            )
        tokens = match["tokens"].replace(b",", b"")
        text = record.text + b" total_tokens=" + tokens
        return record._replace(text=text, fault=fault)

    return read


FORMAT = Format(
    name="olmo",
    system="olmo",
    marker=b"=",  # in both lines
    signs=(b"olmo.train:",),
    pattern=r"\b{DATE}\]?\s[^\r\n]{0,120}?\bolmo\.train:\d{1,6}\b[^\r\n]{0,60}?\[step={ITERATION}/{TOTAL}[\],]"
    r"|\bthroughput/total_tokens=(?P<tokens>\d[\d,]{0,18}){END}",
    remembering=_remembering,
    counts=counts_by({r" total_tokens=(\d{1,15})": "tokens"}),
    accumulates=True,
    evaluates=rb"\bRunning evaluation for '|\[eval_step=\d",
    notes={"timing": "time stamps"},
)
