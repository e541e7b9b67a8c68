"""NVIDIA's PyTorch Tacotron 2 and WaveGlow of 2019, which stamp the end of each iteration.

    :::NVLOGv0.2.2 Tacotron2_PyT 1583224677.666862488 (dllogger/logger.py:251) train_epoch_start: 0
    :::NVLOGv0.2.2 Tacotron2_PyT 1583224688.759857178 (dllogger/logger.py:251) train_iter_stop: 2

An iteration counts within its epoch, which its line does not name.

Source: github.com/NVIDIA/DeepLearningExamples, PyTorch/SpeechSynthesis/Tacotron2/train.py and
dllogger/logger.py; logs in github.com/lambdal/deeplearning-benchmark. No extractor was published.
"""

import re
from collections import defaultdict

from reperf.logs.format import Format, Read, Record, facts_by, read_groups


def _remembering(log_format: Format) -> Read:
    epochs: defaultdict[tuple[int, ...], int] = defaultdict(int)

    def read(match: re.Match[bytes], rank: tuple[int, ...]) -> Record | None:
        if match["epoch"] is not None:
            epochs[rank] = int(match["epoch"])
            return None
        record = read_groups(log_format, match, rank)
        return None if record is None else record._replace(epoch=epochs[rank])

    return read


_ARGUMENTS = r" Tacotron2_PyT [^\r\n]{1,300} args: [^\r\n]{0,4000}?"
FORMAT = Format(
    name="ngc-pytorch-tacotron2-nvlog",
    system="ngc-pytorch",
    marker=b" Tacotron2_PyT ",
    pattern=r":::NVLOGv[\d.]{1,9} Tacotron2_PyT {UNIX} \([^()\r\n]{1,300}\) "
    r"(?:train_epoch_start: {EPOCH}|train_iter_stop: {ITERATION}){END}",
    remembering=_remembering,
    facts=facts_by(
        batch_size=_ARGUMENTS + r'"batch_size": (\d{1,9})\b',
        world_size=_ARGUMENTS + r'"world_size": (\d{1,9})\b',
    ),
    counts_from=0,
)
