"""Coverage-guided fuzzing of the log parsers; by hand, not part of the test suite.

    pip install atheris
    python tests/fuzz/fuzz_logs.py FOLDER -max_total_time=600 -timeout=10 -max_len=4096

FOLDER keeps what the fuzzer finds worth keeping; empty, it is filled with a short log of each
format first. An input is four bytes (format, method, window) and a log. Anything but a
measurement or a refusal in one line is a crash, more than ten seconds are a hang.
"""

import io
import sys
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["reperf"]):
    from reperf.logs.formats import formats
    from reperf.measuring.measure import Method, measure_log

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from tests.unit.logs.written import STYLES

FORMATS = [None, *formats().values()]
FACTS = [("the command line", (("batch_size", 8), ("nodes", 2), ("devices_per_node", 2)))]


def ask(data: bytes) -> None:
    """Measure what the fuzzer made up."""
    if len(data) < 4:
        return
    log_format = FORMATS[data[0] % len(FORMATS)]
    published = data[1] % 4 == 0
    method = Method("published") if published else Method(ends=(data[2], data[2] + 1 + data[3]))
    for measured, *_ in measure_log("log", io.BytesIO(data[4:]), method, log_format, FACTS):
        assert (measured.throughput is None) == (measured.status == "refused")
        assert measured.throughput is None or 0 < measured.throughput < float("inf")
        assert bool(measured.reason) == (measured.status == "refused")
        assert "\n" not in measured.reason


def seed(folder: Path) -> None:
    """Write a short log of each format."""
    for number, log_format in enumerate(FORMATS):
        name = log_format.name if log_format else "mllog"
        style = STYLES[name]
        iterations = [style.first + k * style.every for k in range(6)]
        lines = [style.line(i, i * style.step, 32 / style.step) for i in iterations]
        log = "".join(f"{line}\n" for line in (*style.head, *lines, *style.tail)).encode()
        for method in (0, 1):
            start = bytes((number, method, iterations[1], iterations[4] - iterations[1] - 1))
            (folder / f"{name}-{number}-{method}").write_bytes(start + log)


if __name__ == "__main__":
    corpus = Path(sys.argv[1])
    corpus.mkdir(parents=True, exist_ok=True)
    if not any(corpus.iterdir()):
        seed(corpus)
    atheris.Setup(sys.argv, ask)
    atheris.Fuzz()
