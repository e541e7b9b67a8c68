"""TensorFlow 1's benchmarks, tf_cnn_benchmarks.py: mean speeds of one process, and seldom a time.

    10	images/sec: 133.7 +/- 0.9 (jitter = 1.0)	8.152
    INFO|2020-05-19T07:21:15|/opt/launcher.py|27| 10	images/sec: 31.1 +/- 0.4 (jitter = 0.7)	8.343
    10	images/sec: 323.5 +/- 0.7 (jitter = 2.9)	8.779 1604275069

The second is what Kubeflow's launcher makes of it; the third is that of versions since 2020. Both
clocks are of whole seconds. Ten steps of warm-up come before the first. A speed is the mean of all
steps so far, and is not read.

Source: github.com/tensorflow/benchmarks, scripts/tf_cnn_benchmarks/benchmark_cnn.py; lines as in
public documentation of trainings; logs in github.com/lambdal/lambda-tensorflow-benchmark. No
extractor was published.
"""

import re
from collections.abc import Iterator

from reperf.logs.clock import UNIX
from reperf.logs.facts import Fact
from reperf.logs.format import Format, Record, facts_by, marked, read_groups

_BATCH = facts_by(
    global_batch=r"\bBatch size: +(\d{1,9}) global\s",
    batch_size=r"\s(\d{1,9}) per device\s",
)
_FORWARD = re.compile(rb"\bMode: +(?:forward.only|evaluation)\b")


@marked(*_BATCH.marks, b"Mode: ")
def _facts(head: bytes) -> Iterator[Fact]:
    yield from _BATCH(head)
    if _FORWARD.search(head):
        yield "forward_only", True


def _read(match: re.Match[bytes], rank: tuple[int, ...]) -> Record | None:
    record = read_groups(FORMAT, match, rank)
    if record is None or record.time is not None or match["unix"] is None:
        return record
    return record._replace(time=UNIX.seconds(match["unix"].decode()), tick=1.0)


FORMAT = Format(
    name="tf-cnn-benchmarks",
    system="tensorflow1",
    marker=b"images/sec: ",
    pattern=r"(?:\bINFO\|{DATE}\|[^|\r\n]{1,200}\|\d{1,9}\| ?|(?<![^\s:]))"
    r"{ITERATION}\s{1,12}images/sec: \d{1,9}\.\d{1,3} \+/- {NUMBER} "
    r"\(jitter = {NUMBER}\)\s"
    r"(?:[^\r\n]{0,200}?[ \t](?P<unix>\d{10})(?=[\r\n]))?",
    read=_read,
    facts=_facts,
    evaluates=rb"\bRunning evaluation at global_step \d|\bAccuracy @ 1 = ",
    unit="images/s",
    notes={"timing": "time stamps, where the program or a launcher printed them"},
)
