"""NVIDIA DeepLearningExamples' TensorFlow 1 ResNet-50 through DLLogger, steps from 0.

    DLL 2020-09-01 06:41:11.984949 - (3, 16135) imgs_per_sec : 1146.8574254443538  cross_entropy : ..
    DLL 2020-12-16 07:32:45.552431 - (0, 200) total_ips : 3092.8527524438764

The first is training, the second its benchmark mode. The printed speed leaves out the time between
two session runs.

Source: github.com/NVIDIA/DeepLearningExamples at fed7ba99,
TensorFlow/Classification/ConvNets/utils/hooks; DLPerf
NVIDIADeepLearningExamples/TensorFlow/Classification/ConvNets/resnet50v1.5/extract_tensorflow_logs.py.
"""

from reperf.logs import estimators
from reperf.logs.format import Format, facts_by

FORMAT = Format(
    name="ngc-tensorflow1-resnet50",
    system="ngc-tensorflow1",
    marker=b"DLL ",
    pattern=r"DLL {DATE} - \({EPOCH}, {ITERATION}\) (?:imgs_per_sec|total_ips) : {RATE}{END}",
    facts=facts_by(
        batch_size=(
            r"PARAMETER .* batch_size : (\d{1,9})\s",
            r"\bPer-GPU Batch Size (\d{1,9})\s",
        ),
        world_size=r"\bNum GPUs (\d{1,9})\s",
    ),
    counts_from=0,
    unit="images/s",
    # The script itself leaves out the first 20 steps: these are the next hundred.
    published=estimators.mean_speed(0, 100, estimators.printed_speed(2)),
    notes={"extractor": "arithmetic mean of the first 100 printed speeds, which begin at step 20"},
)
