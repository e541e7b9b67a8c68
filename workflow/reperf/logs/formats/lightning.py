"""PyTorch Lightning's progress bar, also of NeMo 1 and of others that name a bar by its epoch.

    Epoch 0:  22%|##2       | 4/18 [00:17<01:02,  4.47s/it, loss=9.947, v_num=193315]

It counts batches, also where gradients of several are accumulated. Before version 2 it counts the
batches of the validation, too: what follows a bar of the validation is not taken. Whole seconds
need a window of 100 s or more.

Source: github.com/Lightning-AI/pytorch-lightning, pytorch_lightning/callbacks/progress; lines as in
its issue 4225. No extractor was published.
"""

import re
from collections import defaultdict
from collections.abc import Iterator

from reperf.logs.facts import Fact
from reperf.logs.format import Format, Read, Record, facts_by, pace_of
from reperf.logs.progress_bars import BAR, DrawnBars, miscounted


def _remembering(_format: Format) -> Read:
    bars: defaultdict[tuple[int, ...], DrawnBars] = defaultdict(DrawnBars)
    begun: dict[tuple[int, ...], tuple[int, int]] = {}
    validating: set[tuple[int, ...]] = set()

    def read(match: re.Match[bytes], rank: tuple[int, ...]) -> Record | None:
        if match["validation"] is not None:
            if rank in begun:
                validating.add(rank)
            return None
        place = epoch, count = int(match["epoch"]), int(match["iteration"])
        if rank not in begun or epoch != begun[rank][0] or count < begun[rank][1]:
            validating.discard(rank)
            begun[rank] = place
        time = bars[rank].time_of(*place, match["time"].decode())
        if time is None or rank in validating:
            return None
        return Record(
            count,
            rank=rank,
            epoch=epoch,
            time=time,
            tick=bars[rank].tick,
            pace=pace_of(match.groupdict()),
            text=match[0],
            fault=miscounted(match),
        )

    return read


def _tells(_record: bytes) -> Iterator[Fact]:
    yield "accumulation", 1


FORMAT = Format(
    name="lightning",
    system="lightning",
    marker=b"%|",
    pattern=r"(?:^|\b)Epoch {EPOCH}: +(?:: +)?"
    + BAR
    + r"|(?P<validation>\bValidati(?:ng|on\b)[^|\r\n]{0,80}?\d{1,3}%\|)",
    remembering=_remembering,
    facts=facts_by(
        world_size=r"GLOBAL_RANK: 0, MEMBER: 1/(\d{1,9})\b",
    ),
    tells=_tells,
    yields=3,
    notes={
        "timing": (
            "the elapsed time of the progress bar, in whole seconds, up to the first validation "
            "of the epoch"
        )
    },
)
