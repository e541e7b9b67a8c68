"""MaxText: the seconds of every step, counted from 0.

    completed step: 29, seconds: 7.793, TFLOP/s/device: 328.139, Tokens/s/device: 4204.799, total_weights: 16777216, loss: 11.151

The global batch among the parameters that it prints holds what a step accumulates.

Source: github.com/AI-Hypercomputer/maxtext, MaxText/metric_logger.py; lines as in
github.com/AI-Hypercomputer/tpu-recipes. No extractor was published.
"""

from reperf.logs.format import Format, facts_by

FORMAT = Format(
    name="maxtext",
    system="maxtext",
    marker=b"completed step: ",
    pattern=r"\bcompleted step: {ITERATION}, seconds: {DURATION}, TFLOP/s/device: {NUMBER}, "
    r"Tokens/s/device: {NUMBER},(?:[^\r\n]{0,200}? loss: {NUMBER})?",
    facts=facts_by(
        global_batch=r"Config param global_batch_size_to_train_on: (\d{1,9})\s",
    ),
    # The seconds of the step behind it hold it.
    evaluates=rb"\beval metrics after step: |\bCompleted eval step \d",
    counts_from=0,
    accumulates=True,
    notes={"timing": "the time of each step"},
)
