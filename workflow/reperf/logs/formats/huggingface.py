"""Hugging Face Transformers' Trainer: a dictionary every so many steps, and a progress bar.

      Total train batch size (w. parallel, distributed & accumulation) = 64
      Total optimization steps = 125
     80%|########  | 100/125 [01:16<00:19,  1.29it/s]
    {'loss': 0.4821, 'learning_rate': 1e-05, 'epoch': 0.8}

A dictionary says neither step nor time. The bar counts steps of the optimizer, in whole seconds; it
is the Trainer's if its total is the one announced, and until an evaluation, whose bar may have the
same total. A bar with a name is another's, unless that is a label of the announcement, too. The
announcement is left out below a log level: the Trainer's is then the bar, one
without a name, in which the first dictionary stands, until another bar without a name.

Source: github.com/huggingface/transformers, trainer.py and trainer_callback.py; lines as in public
documentation of trainings. No extractor was published.
"""

import re
from collections import Counter, defaultdict

from reperf.logs.format import Format, Record, facts_by, pace_of
from reperf.logs.progress_bars import BAR, DrawnBars, miscounted

_NO_TOTAL = -1
"""No bar has that total."""
_MIXED = (
    "two progress bars of {total} steps take turns at iteration {count}, and nothing says which is the "
    "training's"
)
_NAME = re.compile(rb"[A-Za-z][^\r\n\]>]{0,99}: *$")
"""What stands in front of the percentage of a bar that has a name."""


class _Reader:
    """Reads the matches of one log."""

    def __init__(self, _format: Format) -> None:
        self._total: int | None = None
        self._announced = False
        self._labels = b""
        """What stands in front of the announcement."""
        self._newest: int | None = None
        """Of the newest bar without a name: its total."""
        self._bars: defaultdict[tuple[int, ...], DrawnBars] = defaultdict(DrawnBars)
        self._dictionaries: Counter[tuple[int, ...]] = Counter()

    def __call__(self, match: re.Match[bytes], rank: tuple[int, ...]) -> Record | None:
        if match["announced"] is not None:
            self._total, self._announced = int(match["announced"].replace(b",", b"")), True
            self._bars[rank].announce()
            line = max(match.string.rfind(end, 0, match.start()) for end in (b"\n", b"\r")) + 1
            self._labels = match.string[line : match.start()]
        elif match["evaluation"] is not None:
            self._total, self._newest = self._total and _NO_TOTAL, None
        elif match["loss"] is not None and self._total is None:
            self._total = self._newest
            if self._total is None:
                self._dictionaries[rank] += 1
                return Record(self._dictionaries[rank], rank=rank, text=match[0])
        elif match["total"] is not None:
            return self._of_bar(match, rank)
        return None

    def _of_bar(self, match: re.Match[bytes], rank: tuple[int, ...]) -> Record | None:
        total = int(match["total"])
        named = _NAME.search(match.string, max(0, match.start() - 100), match.start())
        if named and named[0].strip() in self._labels:
            named = None
        if named and total == self._total:
            return None
        if total != self._total:
            if not self._announced and not named:
                self._newest = total
                if self._total is not None:  # that of an evaluation
                    self._total = _NO_TOTAL
                else:  # perhaps the Trainer's: what it shows so far tells the bars apart
                    self._bars[rank].time_of(0, int(match["iteration"]), match["time"].decode())
            return None
        count = int(match["iteration"])
        bars = self._bars[rank]
        time = bars.time_of(0, count, match["time"].decode())
        if time is None:
            return None
        pace = pace_of(match.groupdict())
        mixed = _MIXED.format(total=total, count=count) if bars.mixed else ""
        return Record(
            count,
            rank=rank,
            time=time,
            tick=bars.tick,
            pace=pace,
            text=match[0],
            fault=mixed or miscounted(match),
        )


FORMAT = Format(
    name="huggingface",
    system="huggingface",
    marker=b"i",  # in all the lines that it looks for
    signs=(b" Total optimization steps = ", b"{'loss': "),
    pattern=r"\bTotal optimization steps = (?P<announced>[\d,]{1,15})(?=\s)"
    r"|(?P<evaluation>\*{5} Running (?:Evaluation|Prediction) \*{5}|\{'eval_)"
    r"|(?P<loss>\{'loss': [^{}\r\n]{1,400}'epoch': [^{}\r\n]{1,40}\})"
    r"|" + BAR,
    remembering=_Reader,
    facts=facts_by(
        global_batch=r"Total train batch size \(w\. parallel, distributed & accumulation\) = "
        r"(\d{1,9})\s",
        accumulation=r"\bGradient Accumulation steps = (\d{1,9})\s",
    ),
    accumulates=True,
    yields=3,
    notes={
        "timing": (
            "the elapsed time of the progress bar, in whole seconds, up to the first evaluation; "
            "a dictionary tells none"
        )
    },
)
