"""TensorFlow 2's official models: the custom training loop, here of BERT. No speed is printed.

    I0904 12:01:02.123456 140012345678912 model_training_utils.py:450] Train Step: 20/120  / loss = 9.6

Source: github.com/tensorflow/models at r2.3.0, official/nlp/bert/model_training_utils.py; DLPerf
TensorFlow/bert/extract_tensorflow_logs_time.py.
"""

from reperf.logs import estimators
from reperf.logs.clock import TIME_OF_DAY
from reperf.logs.format import Format
from reperf.logs.formats.tensorflow2_resnet50 import ARGUMENTS, EVALUATES

FORMAT = Format(
    name="tensorflow2-bert",
    system="tensorflow2",
    marker=b"Train Step: ",
    pattern=r"I\d{4} {TIME_OF_DAY}\s+\d{1,20} \S{1,80}\] "
    r"Train Step: {ITERATION}/{TOTAL}\s+/ loss = ",
    evaluates=EVALUATES,
    facts=ARGUMENTS,
    unit="sentences/s",
    published=estimators.between_lines(20, 120, TIME_OF_DAY),
    notes={
        "timing": "time stamps, past midnight too",
        "extractor": "20th to 120th line, by time stamps",
    },
)
