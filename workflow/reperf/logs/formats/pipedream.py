"""PipeDream's image classification: the seconds of each epoch, and no shorter window.

    Epoch 0: 151.468 seconds

An iteration here is an epoch, and its batch the number of samples in it, which is never printed. In
front of all lines of a run stands the same, digits apart: another line is a quotation.

Source: github.com/msr-fiddle/pipedream at 7db6a1c,
runtime/image_classification/main_with_runtime.py. No extractor was published.
"""

import re

from reperf.logs.format import Format, Read, Record, read_groups

_DIGITS = re.compile(rb"\d+")


def _remembering(log_format: Format) -> Read:
    known: bytes | None = None

    def read(match: re.Match[bytes], rank: tuple[int, ...]) -> Record | None:
        nonlocal known
        line = max(match.string.rfind(end, 0, match.start()) for end in (b"\n", b"\r")) + 1
        first = match.string.find(b"Epoch ", line)
        before = _DIGITS.sub(b"", match.string[line:first]).strip()
        if known is None or int(match["iteration"]) == 0:
            known = before
        return read_groups(log_format, match, rank) if before == known else None

    return read


FORMAT = Format(
    name="pipedream",
    system="pipedream",
    marker=b" seconds",
    pattern=r"\bEpoch {ITERATION}: {DURATION} seconds",
    remembering=_remembering,
    counts_from=0,
    notes={"counting": "0: an iteration is an epoch", "timing": "the seconds of each epoch"},
)
