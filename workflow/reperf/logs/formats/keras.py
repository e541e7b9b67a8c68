"""Keras' fit: the whole seconds of each epoch.

    60000/60000 [==============================] - 112s 2ms/sample - loss: 0.2911 - accuracy: 0.9153
    1875/1875 [==============================] - 92s 49ms/step - loss: 0.2911 - accuracy: 0.9153 - val_loss: 0.1392
    1875/1875 ━━━━━━━━━━━━━━━━━━━━ 92s 49ms/step - accuracy: 0.9153 - loss: 0.2911
    1875/1875 - 92s - loss: 0.2911 - accuracy: 0.9153 - 92s/epoch - 49ms/step
    1875/1875 - 92s - 49ms/step - accuracy: 0.9153 - loss: 0.2911

The first two are Keras 2's bars, the third Keras 3's, in colours; the last two are what `verbose=2`
prints. An iteration here is an epoch. Where its count is one of samples, it says how many they are; a
count of steps does not, nor whether it is one, for some versions name samples so. With a validation,
the seconds are those of both. Keras 3 draws a full bar before the last one, too, whose seconds are
those that are left: backspaces follow it.

Source: github.com/keras-team/keras, keras/utils/generic_utils.py and keras/src/utils/progbar.py; runs
of tf-keras 2.21 and Keras 3.15. No extractor was published.
"""

import re
from collections.abc import Iterator

from reperf.logs.facts import Fact
from reperf.logs.format import Format, Prints, Read, Record

_SAMPLES = re.compile(rb"(\d{1,12})/\d{1,12} \[=+\] - \d{1,9}s \d{1,9}[mun]?s/sample ")
_PACE = r"\d{1,9}[mun]?s/(?:step|sample|epoch)"
_FULL = (
    r"(?P<count>\d{1,12})/(?P<total>\d{1,12})"
    r"(?: \[=+\] - | (?:━)+ | - )(?P<duration>\d{1,9})s"
    rf"(?:(?: -)? {_PACE})? - "
)


def _remembering(_format: Format) -> Read:
    epochs: dict[tuple[int, ...], int] = {}

    def read(match: re.Match[bytes], rank: tuple[int, ...]) -> Record | None:
        if match["epoch"] is not None:
            epochs[rank] = int(match["epoch"])
            return None
        if rank not in epochs or match["count"] != match["total"]:
            return None
        timed = b" - val_" not in match["metrics"]
        return Record(
            iteration=epochs[rank],
            rank=rank,
            duration=float(match["duration"]) if timed else None,
            tick=1.0,
            text=match[0],
        )

    return read


def _tells(record: bytes) -> Iterator[Fact]:
    if samples := _SAMPLES.match(record):
        yield "epoch_samples", int(samples[1]) or None


FORMAT = Format(
    name="keras",
    system="keras",
    marker=b"/",
    signs=(b"=] - ", b"/step - ", b"s - loss: "),
    pattern=r"\bEpoch (?P<epoch>\d{1,9})/\d{1,9}(?=[ \t]{0,9}[\r\n])"
    rf"|{_FULL}(?P<metrics>(?:\w[^\r\n\x08]{{0,200}} - )?loss: [^\r\n\x08]{{1,800}})(?=[\r\n])",
    remembering=_remembering,
    tells=_tells,
    step_is=("epoch_samples",),
    untimed="the seconds that it prints for an epoch include its validation",
    yields=3,
    prints=Prints.IN_TWO_LINES,
    notes={
        "counting": "1: an iteration is an epoch",
        "timing": "the seconds of each epoch, unless it is validated",
    },
)
