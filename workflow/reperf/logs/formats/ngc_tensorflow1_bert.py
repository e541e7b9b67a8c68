"""NVIDIA DeepLearningExamples' TensorFlow 1 BERT pretraining through DLLogger.

    DLL 2020-12-17 06:44:17.497577 - Iteration: 50  throughput_train : 142.676 seq/s mlm_loss : 10.2346  ..

Source: github.com/NVIDIA/DeepLearningExamples at fed7ba99,
TensorFlow/LanguageModeling/BERT/run_pretraining.py; DLPerf
NVIDIADeepLearningExamples/TensorFlow/LanguageModeling/BERT/extract_tensorflow_logs_time.py.
"""

from reperf.logs import estimators
from reperf.logs.clock import DATE
from reperf.logs.format import Format, Prints, facts_by

FORMAT = Format(
    name="ngc-tensorflow1-bert",
    system="ngc-tensorflow1",
    marker=b" throughput_train : ",
    pattern=r"DLL {DATE} - Iteration: {ITERATION}  (?:Rank : \d{1,6}\s+)?"
    r"throughput_train : {RATE} (?:seq|sequences)/s",
    facts=facts_by(
        batch_size=(
            r"--train_batch_size[ =](\d{1,9})\s",
            r"\btrain_batch_size: (\d{1,9})\s",
        ),
        accumulation=(
            r"--num_accumulation_steps[ =](\d{1,9})\s",
            r"\bnum_accumulation_steps: (\d{1,9})\s",
        ),
        world_size=r"\bhvd\.size\(\) = (\d{1,9})\b",
    ),
    unit="sentences/s",
    published=estimators.between_iterations(20, 120, DATE),
    prints=Prints.REPEATS,
    notes={"extractor": "20 to 120, by time stamps"},
)
