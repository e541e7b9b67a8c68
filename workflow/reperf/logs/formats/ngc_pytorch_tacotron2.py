"""NVIDIA's PyTorch Tacotron 2 and WaveGlow since 2020, through DLLogger.

    DLL 2020-11-05 18:19:21.830827 - (0, 3) train_iter_time : 1.2082513369996377

Rank 0 prints a line when an iteration has ended. Its time leaves out that of the input, so the stamps
tell the time. A sample is an utterance, or the part of one that WaveGlow learns from. What does not
fill a batch is left out.

Source: github.com/NVIDIA/DeepLearningExamples, PyTorch/SpeechSynthesis/Tacotron2/train.py; logs in
github.com/lambdal/deeplearning-benchmark. No extractor was published.
"""

from reperf.logs.format import Format, Prints, facts_by

FORMAT = Format(
    name="ngc-pytorch-tacotron2",
    system="ngc-pytorch",
    marker=b" train_iter_time : ",
    pattern=r"DLL {DATE} - \({EPOCH}, {ITERATION}\) train_iter_time : {PACE}{END}",
    facts=facts_by(
        batch_size=r"PARAMETER batch_size : (\d{1,9})\s",
        world_size=r"PARAMETER world_size : (\d{1,9})\s",
    ),
    counts_from=0,
    prints=Prints.BUSY_PACES,
)
