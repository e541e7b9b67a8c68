"""Keras' fit: the whole seconds of each epoch.

    60000/60000 [==============================] - 112s 2ms/sample - loss: 0.2911 - accuracy: 0.9153
    1875/1875 [==============================] - 92s 49ms/step - loss: 0.2911 - accuracy: 0.9153 - val_loss: 0.1392

An iteration here is an epoch. Where its count is one of samples, it says how many they are; a count
of steps does not, nor whether it is one, for some versions name samples so. With a validation, the
seconds are those of both.

Source: github.com/keras-team/keras, keras/utils/generic_utils.py and keras/src/utils/progbar.py;
lines as in public questions on its output. No extractor was published.
"""

import re
from collections.abc import Iterator

from reperf.logs.facts import Fact
from reperf.logs.format import Format, Read, Record, line

_SAMPLES = re.compile(rb"(\d{1,12})/\d{1,12} \[=+\] - \d{1,9}s \d{1,9}[mun]?s/sample ")


def _remembering() -> Read:
    epochs: dict[tuple[int, ...], int] = {}

    def read(match: re.Match[bytes], rank: tuple[int, ...]) -> Record | None:
        if match["epoch"] is not None:
            epochs[rank] = int(match["epoch"])
            return None
        if rank not in epochs or match["count"] != match["total"]:
            return None
        timed = match["validation"] is None
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
    signs=(b"=] - ",),
    pattern=line(
        r"(?:^|(?<=\n)|(?<=\r))\s*Epoch (?P<epoch>\d{1,9})/\d{1,9}(?=\s)"
        r"|(?P<count>\d{1,12})/(?P<total>\d{1,12}) \[=+\] - (?P<duration>\d{1,9})s"
        r"(?: \d{1,9}[mun]?s/(?:step|sample|epoch))? - loss: [^\r\n\x08]{1,400}?"
        r"(?P<validation> - val_[^\r\n\x08]{1,400})?(?=[\r\n\x08])"
    ),
    remembering=_remembering,
    tells=_tells,
    step_is=("epoch_samples",),
    untimed="the seconds of an epoch are those of its validation, too",
    yields=3,
    unit="samples/s",
)
