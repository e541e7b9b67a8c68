"""Programs whose progress bars, those of tqdm, count what is trained: their elapsed time is the clock.

     10%|#         | 100/1000 [01:40<15:00,  1.00s/it, loss=2.3]

Source: github.com/tqdm/tqdm, tqdm/std.py. The elapsed time is cut to whole seconds.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

from reperf.logs.clock import ELAPSED
from reperf.logs.facts import AMP_IN_BF16, Fact
from reperf.logs.format import Format, Prints, Read, Record, facts_by, pace_of

BAR = (
    r"(?P<percent>\d{1,3})%\|[^|\r\n]{0,1000}\| *(?<!\d){ITERATION}/(?P<total>\d{1,12}) \[{ELAPSED}<(?:[\d:]{1,20}|\?)"
    r"(?:, *(?:{PACE}s/it|{PACES}it/s)(?=[,\]])|[,\]])"
)
"""The pattern of a bar, but for its name."""
_ROUNDED = 1.0  # by how much the percentage that a bar shows may be off


def miscounted(match: re.Match[bytes]) -> str:
    """What is wrong with a bar whose count is not the share of its total; empty if nothing."""
    percent, count, total = (int(match[group]) for group in ("percent", "iteration", "total"))
    if abs(percent * total - 100 * count) <= _ROUNDED * total:
        return ""
    return f"a progress bar shows {count} of {total} as {percent} %"


_REMEMBERED = 1 << 12
"""How many counts lie between the bars of two nodes, at most: launchers hold lines back."""
_FAR = 50
"""Counts: nodes step together, so that a bar so far behind is another program's, or held back."""
_PAUSE, _CUT = 3.0, 2.0
"""How many times as long a count takes as those before it, and how many seconds more, at most, where
nothing but the clock tells whose it is."""
_DRIFT = 0.1, 5.0
"""By which share, and by how many seconds, two bars of one training may drift apart."""


@dataclass
class _Epoch:
    """What was shown of one epoch of one run."""

    first: int  # the count that was shown first
    began: float  # when the bar began, on the clock of all bars
    latest: int = 0  # the highest count
    elapsed: dict[int, float] = field(default_factory=dict)
    """Of the newest counts: the seconds that were first shown with each."""
    behind: float | None = None
    """By how many seconds the bar that is drawn again from far behind differs from this one."""
    over: bool = False  # whether what stands after these counts may begin another run

    def goes_on(self, count: int, seconds: float) -> bool:
        """Whether the bar that has shown the highest count may have shown this one next."""
        at, steps = self.elapsed[self.latest], count - self.latest
        usual = at / self.latest * steps
        return 0 < steps <= _FAR and 0 <= seconds - at <= _PAUSE * usual + _CUT


class DrawnBars:
    """What the bars of one rank have shown: each count is drawn again and again.

    Without labels, the bars of all nodes of a launch may stand in one log: they are one run's. A run
    announces itself, where the program does so, before any of its bars counts. Else, all its bars
    are drawn with a count of 0 before any counts, for nodes step together.
    """

    def __init__(self) -> None:
        self._epochs: dict[int, _Epoch] = {}
        self._latest = 0.0
        self._shown: tuple[int, int] | None = None
        self._zeros = False  # whether bars are drawn before they count
        self._announced = False
        self._several = False  # whether there is more than one bar
        self._left: _Epoch | None = None
        """What was shown before a bar that is not announced began again."""
        self.mixed = False  # whether the bar before that went on in it
        self._apart = 0.0

    @property
    def tick(self) -> float:
        """Within how many seconds a time is known: bars of several nodes began at several times."""
        return 1.0 + self._apart

    def announce(self) -> None:
        """Take notice that a run announces itself, or one node of a run."""
        self._announced = True
        for known in self._epochs.values():
            known.over = True

    def time_of(self, epoch: int, count: int, elapsed: str) -> float | None:
        """When a count was shown first, in seconds on a clock that goes on through all bars.

        Returns:
            The time; None if a bar has shown this count or a higher one, or if none is shown yet. Of
            a bar that cannot be of the same training, the time that it shows itself: a count that
            has two times is measured nowhere.
        """
        before, self._shown = self._shown, (epoch, count)
        known = self._epochs.get(epoch)
        if count == 0:
            self._zeros = True
            self._several = self._several or before == (epoch, 0)
            if known is not None and not self._announced:
                known.over = True
            return None
        seconds = ELAPSED.seconds(elapsed)
        again = known is not None and count <= known.first and before != (epoch, count)
        # Behind another bar's 0, a bar that had begun before may go on.
        over = known is not None and known.over and not known.goes_on(count, seconds)
        again = again or (over and before == (epoch, 0))
        # A line that stands in the wrong place must not move the clock of those behind it.
        if known is None or (again and (known.over or not (self._zeros or self._announced))):
            self._left, self.mixed = None if self._announced else known, False
            known = self._epochs[epoch] = _Epoch(count, self._latest)
        elif self._is_left(known, count, seconds, before):
            self.mixed = True
            return known.began + seconds
        elif count <= known.latest:
            self._compare(known, count, seconds)
            if before is None or not 0 < before[1] <= count:  # it has begun anew
                known.behind = None
            return known.began + seconds if self._drifts(known, count, seconds) else None
        known.latest = count
        known.elapsed[count] = seconds
        if len(known.elapsed) > _REMEMBERED:
            del known.elapsed[next(iter(known.elapsed))]
        time = known.began + seconds
        # Another bar, whose clock is behind, may be the first to show it.
        if self._several and time >= self._latest - self.tick:
            time = max(time, self._latest)
        self._latest = max(self._latest, time)
        return time

    def _is_left(
        self, known: _Epoch, count: int, seconds: float, before: tuple[int, int] | None
    ) -> bool:
        """Whether a bar that had begun before this one goes on, as another program's may not."""
        if self._left is None or not self._left.goes_on(count, seconds):
            return False
        back = before is not None and before[1] - count > _FAR
        return back or (count > known.latest and not known.goes_on(count, seconds))

    def _compare(self, known: _Epoch, count: int, seconds: float) -> None:
        """Learn from a count that was shown before how far the clocks of several bars are apart."""
        self._several = self._several or count < known.latest
        if self._several and count in known.elapsed:
            self._apart = max(self._apart, abs(seconds - known.elapsed[count]))

    def _drifts(self, known: _Epoch, count: int, seconds: float) -> bool:
        """Whether a bar that is drawn from far behind counts at another speed."""
        if count not in known.elapsed or known.latest - count < _FAR or count <= known.first:
            return False
        behind = seconds - known.elapsed[count]
        known.behind = behind if known.behind is None else known.behind
        share, least = _DRIFT
        return abs(behind - known.behind) > max(least, share * max(seconds, known.elapsed[count]))


_NO_TOTAL = -1  # no bar has that total
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
        self._labels = b""  # what stands in front of the announcement
        self._newest: int | None = None  # of the newest bar without a name: its total
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


_ANNOUNCED = facts_by(
    global_batch=r"Total train batch size \(w\. parallel, distributed & accumulation\) = (\d[\d,]{0,10})\s",
    accumulation=r"\bGradient Accumulation steps = (\d{1,9})\s",
)
_PER_DEVICE = facts_by(batch_size=r"\bInstantaneous batch size per device = (\d[\d,]{0,10})\s")
_HALF = re.compile(rb"(?<!\w)(?:(fp16)|bf16)=True,")


def _announced(head: bytes) -> Iterator[Fact]:
    """What the Trainer announces.

    Where one process has several devices, the batch "per device" is that of all of them: so it is
    believed only where there are several processes, of one device each.
    """
    facts = list(_ANNOUNCED(head))
    yield from facts
    known = dict(facts)
    whole, several = known.get("global_batch"), known.get("accumulation")
    for _, batch in _PER_DEVICE(head):
        processes, rest = divmod(whole or 0, batch * (several or whole or 1))
        if several and processes > 1 and not rest:
            yield "batch_size", batch
            yield "world_size", processes
    yield from (("precision", "fp16" if half[1] else AMP_IN_BF16) for half in _HALF.finditer(head))


HUGGINGFACE = Format(
    name="huggingface",
    marker=b"i",  # in all the lines that it looks for
    signs=(b" Total optimization steps = ", b"{'loss': "),
    pattern=r"\bTotal optimization steps = (?P<announced>[\d,]{1,15})(?=\s)"
    r"|(?P<evaluation>\*{5} Running (?:Evaluation|Prediction) \*{5}|\{'eval_)"
    r"|(?P<loss>\{'loss': [^{}\r\n]{1,400}'epoch': [^{}\r\n]{1,40}\})"
    r"|" + BAR,
    remembering=_Reader,
    facts=_announced,
    precedence=3,
    prints=Prints.STEPS,
)
"""Hugging Face Transformers' Trainer: a dictionary every so many steps, and a progress bar.

      Total train batch size (w. parallel, distributed & accumulation) = 64
      Total optimization steps = 125
     80%|########  | 100/125 [01:16<00:19,  1.29it/s]
    {'loss': 0.4821, 'learning_rate': 1e-05, 'epoch': 0.8}

A dictionary says neither step nor time. The bar counts steps of the optimizer, in whole seconds; it
is the Trainer's if its total is the one announced, and until an evaluation, whose bar may have the
same total. A bar with a name is another's, unless that is a label of the announcement, too. The
announcement is left out below a log level: the Trainer's is then the bar without a name in which the
first dictionary stands, until another bar without a name.

Source: github.com/huggingface/transformers, trainer.py and trainer_callback.py; lines as in public
documentation of trainings.
"""


def _not_validating(_format: Format) -> Read:
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
            facts=(("accumulation", 1),),
        )

    return read


LIGHTNING = Format(
    name="lightning",
    marker=b"%|",
    pattern=r"(?:^|\b)Epoch {EPOCH}: +(?:: +)?"
    + BAR
    + r"|(?P<validation>\bValidati(?:ng|on\b)[^|\r\n]{0,80}?\d{1,3}%\|)",
    remembering=_not_validating,
    facts=facts_by(world_size=r"GLOBAL_RANK: 0, MEMBER: 1/(\d{1,9})\b"),
    precedence=3,
)
"""PyTorch Lightning's progress bar, also of NeMo 1 and of others that name a bar by its epoch.

    Epoch 0:  22%|##2       | 4/18 [00:17<01:02,  4.47s/it, loss=9.947, v_num=193315]

It counts batches, also where gradients of several are accumulated. Before version 2 it counts the
batches of the validation, too: what follows a bar of the validation is not taken. Whole seconds
need a window of 100 s or more.

Source: github.com/Lightning-AI/pytorch-lightning, pytorch_lightning/callbacks/progress; lines as in
its issue 4225.
"""

YOLO = Format(
    name="yolov7",
    marker=b"%|",
    pattern=r"(?<![^\s]){EPOCH}/\d{1,9} +[\d.]{1,10}G(?: +{NUMBER}){5,7}: +"
    + BAR
    + r"|(?P<validation>\bmAP@?[^|\r\n]{1,60}?\d{1,3}%\|)",
    remembering=_not_validating,
    facts=facts_by(
        global_batch=r"\bNamespace\([^\r\n]{0,4000}\btotal_batch_size=(\d{1,9})\b",
        world_size=r"\bNamespace\([^\r\n]{0,4000}\bworld_size=([2-9]|\d\d{1,5})\b",
    ),
    precedence=3,
    unit="images/s",
)
"""YOLOv7's progress bar, which is that of YOLOv5 and of the YOLOs that came later.

       32/4999     55.1G   0.05461   0.01017   0.03715    0.1019        26      1856: 100%|##########| 295/295 [12:51<00:00,  2.62s/it]

In front stand the epoch, the memory, the losses, the labels and the size of the images. It counts
batches, also where gradients of several are accumulated. The arguments say the batch of all devices; a
world size of 1 may be that of one process with several devices, and is not read.

Source: github.com/WongKinYiu/yolov7, train.py; lines as in its issue 849.
"""
