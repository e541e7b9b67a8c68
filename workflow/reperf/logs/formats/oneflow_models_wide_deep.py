"""OneFlow's models repository, Wide & Deep: milliseconds per iteration since the previous line.

    [rank:0] iter: 200/1200, loss: 0.0780148208141327, latency(ms): 2.2327776625752449 | 2021-12-01 13:19:02.848

Source: github.com/Oneflow-Inc/models, RecommenderSystems/wide_and_deep; DLPerf
OneFlow/ClickThroughRate/WideDeepLearning/extract_info_from_log.py.
"""

from collections.abc import Sequence

from reperf.logs import estimators
from reperf.logs.facts import Facts
from reperf.logs.format import Estimate, Format, Record, facts_by


def _published(records: Sequence[Record], _facts: Facts) -> Estimate:
    """Milliseconds per iteration: the mean of the printed ones except the first and the last."""
    estimators.enough(records, 3)
    inside = records[1:-1]
    latency = sum((one.duration or 0.0) * 1000 for one in inside) / len(inside)
    return Estimate(
        round(latency, 3), records[0].iteration, inside[-1].iteration, unit="ms/iteration"
    )


FORMAT = Format(
    name="oneflow-models-wide-deep",
    system="oneflow",
    marker=b" latency(ms): ",
    pattern=r"\[rank:\d{1,6}\] iter: {ITERATION}/{TOTAL}, loss: {NUMBER}, "
    r"latency\(ms\): {MILLISECONDS} \| {DATE}{END}",
    facts=facts_by(
        global_batch=r"\bbatch_size = (\d{1,9})\s",
        batch_size=r"\bbatch_size_per_proc = (\d{1,9})\s",
    ),
    published=_published,
    notes={"extractor": "mean of the printed latencies without the first and the last"},
)
