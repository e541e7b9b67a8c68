"""Facebook's maskrcnn-benchmark, as in MLPerf's Mask R-CNN: lines with time stamps.

    2020-06-25 18:56:46,514 maskrcnn_benchmark.trainer INFO: eta: 1:23:56  iter: 25700  loss: 0.5231 (0.6793)  .. time: 0.3168 (0.3522)  data: 0.0029 (0.0395)  lr: 0.080000  max mem: 8710

Iterations go on through all epochs; evaluations stand between the lines. Where MLLOG lines count, too
(since v1.0), they are meant.

Source: github.com/facebookresearch/maskrcnn-benchmark, maskrcnn_benchmark/engine/trainer.py; logs
in github.com/mlcommons/training_results_v0.7 at 0a8a85a. No extractor was published.
"""

from reperf.logs.format import Format, facts_by

FORMAT = Format(
    name="maskrcnn-benchmark",
    system="maskrcnn-benchmark",
    marker=b"trainer INFO: eta: ",
    pattern=r"{DATE} maskrcnn_benchmark\.trainer INFO: eta: [^\r\n]{1,40}?  "
    r"iter: {ITERATION}  [^\r\n]{0,1000}?\btime: {PACE} ",
    facts=facts_by(global_batch=r"\bSOLVER\.IMS_PER_BATCH'?,? '?(\d{1,9})\b"),
    evaluates=rb" INFO: Start evaluation on ",
    yields=2,
    unit="images/s",
)
