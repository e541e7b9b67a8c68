"""Composer's console logger, as of LLM Foundry: what a batch measured, a line each.

    [batch=20/20]:
    Train time/batch: 19
    Train time/sample: 38
    Train time/token: 38912
    Train throughput/samples_per_sec: 0.2170
    Train time/train: 0.0536

The batches, samples and tokens are those before the batch, of all devices. The time is that of training
so far, with this batch and without evaluations, in hours of four digits, thus in steps of 0.36 s. That
these are hours the log does not say: the speed must agree, and a time without one is not taken.

Source: github.com/mosaicml/composer, composer/loggers/console_logger.py and
composer/callbacks/speed_monitor.py; lines as in AMD's blog on MPT-30B and in the logs of users. No
extractor was published.
"""

import re
from collections import defaultdict

from reperf.logs.clock import MILLISECONDS, tick
from reperf.logs.format import Format, Read, Record, counts_by, facts_by

_HOUR = 3600.0
_NEEDED = ("batch", "sample", "time")


def _remembering(_format: Format) -> Read:
    blocks: defaultdict[tuple[int, ...], dict[str, str]] = defaultdict(dict)

    def read(match: re.Match[bytes], rank: tuple[int, ...]) -> Record | None:
        key, value = next((key, said.decode()) for key, said in match.groupdict().items() if said)
        block = blocks[rank]
        if key == "batch":
            block.clear()
        # A number that comes again is of another batch, whose first line is lost.
        if key in block or (key != "batch" and not block):
            block.clear()
            return None
        block[key] = value
        if key != "time":
            return None
        known = blocks.pop(rank)
        if any(name not in known for name in _NEEDED):
            return None
        rate = float(known["rate"]) if "rate" in known else None
        said = (f"{name}={known[name]} " for name in ("batch", "sample", "token") if name in known)
        return Record(
            int(known["batch"]) + 1,
            rank=rank,
            time=float(known["time"]) * _HOUR if rate else None,
            tick=tick(known["time"]) * _HOUR,
            rate=rate,
            text="".join((*said, known["time"])).encode(),
        )

    return read


FORMAT = Format(
    name="composer",
    system="composer",
    marker=b"Train t",
    pattern=r"\bTrain (?:time/(?:batch: (?P<batch>\d{1,15})|sample: (?P<sample>\d{1,15})|token: (?P<token>\d{1,15})"
    r"|train: (?P<time>\d{1,15}\.\d{4}))|throughput/samples_per_sec: {RATE}){END}",
    clock=MILLISECONDS,
    remembering=_remembering,
    facts=facts_by(global_batch=r"\bglobal_train_batch_size: (\d{1,9})\s"),
    counts=counts_by({r"sample=(\d{1,15}) ": "samples", r"token=(\d{1,15}) ": "tokens"}),
    untimed="it prints no speed that shows in which unit its time is",
    notes={"timing": "the hours of training so far, which it prints in steps of 0.36 s"},
)
