"""TensorFlow 1's benchmarks, tf_cnn_benchmarks.py: mean speeds of one process, and seldom a time.

    10	images/sec: 133.7 +/- 0.9 (jitter = 1.0)	8.152
    INFO|2020-05-19T07:21:15|/opt/launcher.py|27| 10	images/sec: 31.1 +/- 0.4 (jitter = 0.7)	8.343

The second is what Kubeflow's launcher makes of it, whose clock is one of whole seconds. Ten steps of
warm-up come before the first.

Source: github.com/tensorflow/benchmarks, scripts/tf_cnn_benchmarks/benchmark_cnn.py; lines as in
public documentation of trainings. No extractor was published.
"""

from reperf.logs.format import Format, facts_by

FORMAT = Format(
    name="tf-cnn-benchmarks",
    system="tensorflow1",
    marker=b"images/sec: ",
    pattern=r"(?:\bINFO\|{DATE}\|[^|\r\n]{1,200}\|\d{1,9}\| ?|(?<![^\s:]))"
    r"{ITERATION}\s{1,12}images/sec: {NUMBER} \+/- {NUMBER} \(jitter = {NUMBER}\)\s",
    facts=facts_by(
        global_batch=r"\bBatch size: +(\d{1,9}) global\s",
        batch_size=r"\s(\d{1,9}) per device\s",
    ),
    unit="images/s",
    timing="time stamps, where a launcher printed them",
)
