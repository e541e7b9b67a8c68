"""TensorFlow 2's official models: the TimeHistory callback, here of ResNet-50.

    I0407 21:17:05.025709 139725706671936 keras_utils.py:145] TimeHistory: 6.46 seconds, 495.19 examples/second between steps 100 and 200

Source: github.com/tensorflow/models at r2.3.0, official/utils/misc/keras_utils.py; DLPerf
TensorFlow/resnet50v1.5/extract_tensorflow_logs.py.
"""

from reperf.logs import estimators
from reperf.logs.format import Format, facts_by

EVALUATES = rb"\] Running evaluation after step: | - val_loss: "
"""What they print when they evaluate: their own loop, and Keras."""
ARGUMENTS = facts_by(
    global_batch=r"\b[Gg]lobal batch size: (\d{1,9})\s",
)
"""What the scripts of the official models print before they train."""

FORMAT = Format(
    name="tensorflow2-resnet50",
    system="tensorflow2",
    marker=b"TimeHistory: ",
    pattern=r"I\d{4} {TIME_OF_DAY}\s+\d{1,20} \S{1,80}\] "
    r"TimeHistory: {NUMBER} seconds, {RATE} examples/second between steps \d{1,12} and {ITERATION}{END}",
    evaluates=EVALUATES,
    facts=ARGUMENTS,
    unit="images/s",
    # Six lines of 100 steps, the first left out.
    published=estimators.mean_speed(1, 6, estimators.printed_speed()),
    notes={
        "timing": "time stamps, past midnight too",
        "extractor": "arithmetic mean of the printed speeds of steps 100 to 600",
    },
)
