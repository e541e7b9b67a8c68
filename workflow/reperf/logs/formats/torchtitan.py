"""torchtitan: lines with time stamps, of steps of the optimizer.

    [rank0]:[titan] 2025-06-04 08:52:10,224 - root - INFO - step: 20  loss:  8.9196  memory: 30.99GiB(32.62%)  tps: 7,022  tflops: 406.65  mfu: 41.12%

It prints step 1, and then every so many. A step holds all that it accumulates, as the global batch
does that the trainer prints at its start (since 2025). tps counts tokens, of one device.

Source: github.com/pytorch/torchtitan at 00fbaaf, torchtitan/components/metrics.py; lines as in
PyTorch's and AMD's documentation. No extractor was published.
"""

from reperf.logs.format import Format, facts_by

FORMAT = Format(
    name="torchtitan",
    system="torchtitan",
    marker=b"GiB(",
    pattern=r"\[titan\] {DATE} - \w{1,40} - INFO - step: *{ITERATION} +"
    r"loss: *{NUMBER} [^\r\n]{0,200}?memory: *{NUMBER}GiB\({NUMBER}%\)  ",
    evaluates=rb" - INFO - validate step: ",
    facts=facts_by(
        global_batch=r"local batch size \d{1,9}, global batch size (\d{1,9}),",
    ),
    accumulates=True,
)
