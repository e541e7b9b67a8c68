"""OpenMMLab's trainings since 2022, on MMEngine: a clock of whole seconds without a year.

    11/22 21:31:51 - mmengine - INFO - Epoch(train) [1][160/160]  lr: 1.0000e-01  eta: 0:00:00  time: 0.1300  data_time: 0.0005  loss: 0.7413
    11/22 21:31:51 - mmengine - INFO - Iter(train) [ 50/2000]  lr: 1.0000e-01  eta: 0:04:11  time: 0.1300  data_time: 0.0005  loss: 0.7413

The printed time is the mean of the newest ten iterations, whatever the interval.
Before, mmcv printed other lines: see openmmlab.py.

Source: github.com/open-mmlab/mmengine, mmengine/runner/log_processor.py; runs of 0.10. No extractor
was published.
"""

from reperf.logs.format import Format, facts_by

FORMAT = Format(
    name="mmengine",
    system="openmmlab",
    marker=b" - mmengine - INFO - ",
    pattern=r"{YEARLESS} - mmengine - INFO - (?:Epoch\(train\) +\[{EPOCH}\]|Iter\(train\) +)"
    r"\[ *{ITERATION}/{TOTAL}\]  [^\r\n]{0,1000}?\btime: {PACE}  data_time: {NUMBER}{END}",
    # The second is XTuner's, which lets the model talk.
    evaluates=rb" - mmengine - INFO - (?:(?:Iter|Epoch)\(val\) |after_train_iter in EvaluateChatHook)",
    facts=facts_by(
        world_size=r"\bGPU number: (\d{1,9})\s",
    ),
)
