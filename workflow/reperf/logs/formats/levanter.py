"""Levanter's progress lines, at most one a minute.

    Progress on:train 11.0it/18.0it rate:34.5s/it remaining:04:01 elapsed:17:46 postfix:loss=15.5

They count steps of the optimizer, from the thousandth on with three digits only: such lines say no
iteration, and are not read.

Source: github.com/marin-community/levanter, src/levanter/callbacks/_metrics.py, with
github.com/tradingstrategy-ai/tqdm-loggable, tqdm_loggable/tqdm_logging.py; lines as in
github.com/marin-community/marin. No extractor was published.
"""

import re

from reperf.logs.clock import ELAPSED
from reperf.logs.format import Format, Record


def _read(match: re.Match[bytes], rank: tuple[int, ...]) -> Record | None:
    count = float(match["iteration"])
    if not count.is_integer():
        return None
    seconds = ELAPSED.seconds(match["time"].decode())
    return Record(int(count), rank=rank, time=seconds, tick=1.0, text=match[0])


FORMAT = Format(
    name="levanter",
    system="levanter",
    marker=b"Progress on:train ",
    pattern=r"\bProgress on:train (?P<iteration>\d{1,3}(?:\.\d\d?)?)it/[\d.]{1,6}[kMG]?it "
    r"rate:[^\s]{1,20} remaining:[\d:?]{1,20} elapsed:{ELAPSED} postfix:[^\r\n]{0,40}{END}",
    read=_read,
    evaluates=rb"\bProgress on:eval ",
    accumulates=True,
    notes={"timing": "the elapsed time of the progress line, in whole seconds"},
)
