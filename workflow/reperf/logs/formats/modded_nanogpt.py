"""modded-nanogpt: the milliseconds of training so far, without those of its validations.

    step:21/1480 train_time:1566ms step_avg:142.33ms
    step:125/1480 val_loss:4.4183 train_time:16547ms step_avg:143.88ms

The clock stands still while it validates. Older versions set it back to 0 at the tenth step; some
print validations alone, whose times are seconds. One that comes behind the line of its own step says
nothing more. The log holds the program's own text, whose defaults are not what a run was given: its
batch is in none.

Source: github.com/KellerJordan/modded-nanogpt, train_gpt.py and the logs under records. No extractor
was published.
"""

import re
from collections import defaultdict

from reperf.logs.clock import MILLISECONDS
from reperf.logs.format import Format, Read, Record, beyond

_SECONDS_IN = {b"ms": 1000.0, b"s": 1.0}


_UNTIMED = (0, 10)
"""How many steps, at the start, are in no mean."""
_OFF = 0.5, 0.001
"""By how many steps, and by which share of them, a mean may be off, for it is rounded."""


def _by_mean(step: int, match: re.Match[bytes]) -> str:
    """What is wrong with a line whose time and mean are those of another number of steps.

    Where the time is in seconds, it begins long before the steps whose mean is printed.
    """
    if match["unit"] != b"ms" or not match["average"] or not (mean := float(match["average"])):
        return ""
    steps, (few, share) = float(match["time"]) / mean, _OFF
    off = few + share * step + 1 / mean  # times are rounded to milliseconds
    if any(abs(steps - (step - untimed)) <= off for untimed in _UNTIMED):
        return ""
    return (
        f"the line of step {step} says that {match['time'].decode()} ms were trained, at a mean of "
        f"{mean:g} ms a step: these are {steps:.6g} steps"
    )


def _remembering(_format: Format) -> Read:
    trained: defaultdict[tuple[int, ...], int] = defaultdict(int)

    def read(match: re.Match[bytes], rank: tuple[int, ...]) -> Record | None:
        step = int(match["iteration"])
        if match["validated"] is None:
            trained[rank] = step
        elif trained[rank] == step > 0:
            return None
        time = float(match["time"]) / _SECONDS_IN[match["unit"]]
        return Record(
            iteration=step,
            rank=rank,
            time=time,
            tick=0.001,
            text=match[0],
            fault=beyond(step, match["total"]) or _by_mean(step, match),
        )

    return read


FORMAT = Format(
    name="modded-nanogpt",
    system="modded-nanogpt",
    marker=b" train_time:",
    pattern=r"\bstep:{ITERATION}/{TOTAL} (?:(?P<validated>val_loss:){NUMBER} (?:val_[a-z]{1,20}_loss:{NUMBER} )*|train_loss:{NUMBER} )?"
    r"train_time:(?P<time>\d{1,12}(?:\.\d{1,6})?)(?P<unit>m?s) step_avg:(?:(?P<average>\d{1,9}(?:\.\d{1,6})?)ms|{NUMBER}){END}",
    clock=MILLISECONDS,
    remembering=_remembering,
    notes={"timing": "the seconds of training so far, which it prints"},
)
