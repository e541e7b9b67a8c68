"""Facebook's DLRM, as in MLPerf's results of Intel: the mean time of an iteration since a line.

    Finished training it 256/128028 of epoch 0, 69.51 ms/it, loss 0.140974, accuracy 96.732 %
    [6] Finished training it 44800/128028 of epoch 0, 41.10 ms/it, loss 0.123838, accuracy 96.704 %

Each rank prints; on several nodes their numbers stand in front. The time of tests is not in it.

Source: github.com/facebookresearch/dlrm, dlrm_s_pytorch.py; logs in
github.com/mlcommons/training_results_v0.7 at 0a8a85a, results of Intel. No extractor was published.
"""

from reperf.logs.averages import durations_since
from reperf.logs.format import Format, Prints

FORMAT = Format(
    name="facebook-dlrm",
    system="facebook-dlrm",
    marker=b" ms/it, loss ",
    pattern=r"(?:\[{RANK}\] )?Finished training it {ITERATION}/{TOTAL} of epoch {EPOCH}, "
    r"{MILLISECONDS} ms/it, loss {NUMBER}",
    remembering=durations_since(),
    prints=Prints.EVENLY,
    notes={"timing": "the mean time of an iteration since the previous line"},
)
