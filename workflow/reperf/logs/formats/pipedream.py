"""PipeDream's image classification: the seconds of each epoch, and no shorter window.

    Epoch 0: 151.468 seconds

An iteration here is an epoch, and its batch the number of samples in it, which is never printed.

Source: github.com/msr-fiddle/pipedream at 7db6a1c,
runtime/image_classification/main_with_runtime.py. No extractor was published.
"""

from reperf.logs.format import Format

FORMAT = Format(
    name="pipedream",
    system="pipedream",
    marker=b" seconds",
    pattern=r"\bEpoch {ITERATION}: {DURATION} seconds",
    counts_from=0,
    counting="0: an iteration is an epoch",
    timing="the seconds of each epoch",
)
