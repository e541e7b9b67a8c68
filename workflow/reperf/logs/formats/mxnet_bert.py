"""MXNet's gluon-nlp BERT pretraining: every rank prints how long its batch took.

    [step 120]\\tmlm_loss=9.12345\\tnsp_loss= 0.69\\tthroughput=83.2K tks/s\\tlr=0.0000100 time=0.20, latency=196.9 ms/batch

Each line is taken for one batch, as with log_interval 1; if batches are missing between lines, the
window rule refuses the log.

Source: github.com/dmlc/gluon-nlp at 7b7bf602, scripts/bert/pretraining_utils.py; DLPerf
MxNet/BERT/extract_mxnet_logs.py.
"""

from reperf.logs import estimators
from reperf.logs.facts import Facts
from reperf.logs.format import Format, Record, facts_by


def _speed(record: Record, facts: Facts) -> float:
    latency = round(estimators.needed(record.duration) * 1000, 1)
    return 1000.0 / estimators.needed(latency) * facts.need("global_batch")


FORMAT = Format(
    name="mxnet-bert",
    system="mxnet",
    marker=b"ms/batch",
    pattern=r"\[step {ITERATION}\]\s+(?:\w{1,20}=\s*{NUMBER}\s+){2,4}throughput={NUMBER} tks/s\s+"
    r"lr={NUMBER} time={NUMBER}, latency={MILLISECONDS} ms/batch",
    facts=facts_by(
        global_batch=r"\btotal_batch_size=(\d{1,9})\b",
        world_size=r"mpirun .*-np (\d{1,9})\s",
    ),
    unit="sentences/s",
    published=estimators.mean_of_rank_medians(100, 200, _speed),
    notes={
        "timing": "the latency of each batch",
        "extractor": (
            "medians over ranks, then the arithmetic mean of 101 to 200; needs exactly 200 lines "
            "from each rank"
        ),
    },
)
