"""OneFlow-Benchmark's Wide & Deep: a time stamp, and no speed.

    100 time 1602836839.6445205 loss 0.5471092355251312

Source: github.com/Oneflow-Inc/OneFlow-Benchmark,
ClickThroughRate/WideDeepLearning/wdl_train_eval.py; DLPerf
OneFlow/ClickThroughRate/WideDeepLearning/extract_info_from_log.py.
"""

from collections.abc import Sequence

from reperf.logs.checks import Refused
from reperf.logs.facts import Facts
from reperf.logs.format import Estimate, Format, Record
from reperf.logs.formats.hugectr_wide_deep import ARGUMENTS

_STEPS = 1000


def _published(records: Sequence[Record], _facts: Facts) -> Estimate:
    """Milliseconds per iteration, from the first line to the one 1000 iterations later."""
    start = records[0]
    stop = next((one for one in records if one.iteration - start.iteration == _STEPS), None)
    if stop is None:
        raise Refused(
            "method", f"the published method needs a line {_STEPS} iterations after the first"
        )
    seconds = (stop.time or 0.0) - (start.time or 0.0)
    return Estimate(
        round(seconds, 3), start.iteration, stop.iteration, seconds=seconds, unit="ms/iteration"
    )


FORMAT = Format(
    name="oneflow-wide-deep",
    system="oneflow",
    marker=b" time ",
    # A time that broke off may go on with the next line's count.
    pattern=r"(?<![\w.-])(?<! time ){ITERATION} time {UNIX} loss {NUMBER}{END}",
    facts=ARGUMENTS,
    published=_published,
    notes={
        "extractor": "seconds of 1000 iterations after the first line, given as ms per iteration"
    },
)
