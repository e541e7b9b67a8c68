"""torchvision's reference scripts, as in MLPerf's SSD: the mean time of the newest 20 iterations.

    Epoch: [4]  [  80/9143]  eta: 0:29:38  lr: 0.000100  time: 0.1946  data: 0.0269  max mem: 10522

Iterations count from 0, and the line of each is printed behind it. Where one is printed every 20, the
means cover all of an epoch; of other intervals they do not.

Source: github.com/pytorch/vision, references/detection/utils.py; logs in
github.com/mlcommons/training_results_v2.0, benchmark ssd. No extractor was published.
"""

from reperf.logs.averages import durations_since
from reperf.logs.format import Format

FORMAT = Format(
    name="torchvision",
    system="torchvision",
    marker=b"  eta: ",
    # What is between is of this iteration: a line that broke off may go on with another one's.
    pattern=r"Epoch: \[{EPOCH}\]  \[ *{ITERATION}/{TOTAL}\]  eta: "
    r"(?:(?!Epoch: )[^\r\n]){1,1000}?  time: {DURATION}  data: {NUMBER}",
    remembering=durations_since(newest=20),
    untimed="its times are means of 20 iterations, and a line is printed for another number of them",
    counts_from=0,
    yields=2,
    unit="images/s",
    notes={"timing": "the mean time of 20 iterations, if a line is printed every 20"},
)
