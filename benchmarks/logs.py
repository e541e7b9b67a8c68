"""How fast logs are measured, beside a loop of the kind that the published extractors use.

    python benchmarks/logs.py [--gigabytes 2] [--megabytes-each 32] [--short 1000]
        [--records 8600000] [--folder FOLDER]

Builds logs in three formats, long runs that print every iteration: OneFlow's lines alone; NGC
MXNet's of eight labelled ranks that take turns; reperf's own among progress bars and warnings.
Then the same files are measured by `reperf.measuring.found_logs` with one and two processes, and
by a plain loop: readlines, a regular expression on every line, the speed between two iterations.
All read from the page cache, a few logs each in turn; the numbers they find are compared.
Then one log of many records is measured by `--window all`, and one file without line ends.
"""

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from functools import partial
from itertools import count
from pathlib import Path

from reperf.measuring.found_logs import MeasureRequest, measure_paths
from reperf.measuring.measure import Method

START = 1_600_000_000
STEP = 0.5
BATCH = 2048


def oneflow_lines(iteration: int) -> str:
    return (
        f"train: epoch 0, iter {iteration}, loss: 6.907755, top_1: 0.000977, top_k: 0.004883, "
        f"samples/s: {BATCH / STEP:.3f} {START + iteration * STEP:.7f}\n"
    )


def ngc_mxnet_lines(iteration: int) -> str:
    seconds = iteration * STEP
    clock = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(START + seconds))
    return "".join(
        f"[1,{rank}]<stderr>:{clock},{int(seconds * 1000 + rank) % 1000:03d}:INFO: Epoch[0] "
        f"Batch [{iteration}-{iteration}]\tSpeed: {BATCH / STEP!r} samples/sec\tLR: 0.0148886\n"
        for rank in range(8)
    )


def mllog_lines(iteration: int) -> str:
    return (
        "/usr/lib/python3/torch/nn/functional.py:718: UserWarning: Named tensors are experimental\n"
        f"\rTrain: {iteration:6d}/100000 |####      | [00:07<00:13, 2.00it/s, loss=6.91]"
        f'\n:::MLLOG {{"namespace": "", "time_ms": 0, "event_type": "POINT_IN_TIME", "key": '
        f'"tracked_stats", "value": {{"iteration": {iteration}, "seconds": {iteration * STEP}, '
        f'"samples": {iteration * BATCH}, "loss": 6.91, "throughput": {BATCH / STEP}}}, '
        '"metadata": {"file": "steplog.py", "lineno": 0}}\n'
    )


HEADS = {
    "oneflow": "batch_size_per_device = 128\ngpu_num_per_node = 8\nnum_nodes = 2\n",
    "ngc-mxnet": f"horovodrun -np 16 python3 train.py --batch-size {BATCH} --disp-batches 1\n",
    "mllog": f':::MLLOG {{"key": "global_batch_size", "value": {BATCH}}}\n',
}
TAILS = {"mllog": ':::MLLOG {"key": "run_stop", "metadata": {"status": "success"}}\n'}
LINES: dict[str, Callable[[int], str]] = {
    "oneflow": oneflow_lines,
    "ngc-mxnet": ngc_mxnet_lines,
    "mllog": mllog_lines,
}
PLAIN = {
    "oneflow": re.compile(r"train: epoch \d+, iter (\d+), .*samples/s: [\d.]+ ([\d.]+)"),
    "ngc-mxnet": re.compile(
        r"(?P<date>\d{4}-\d{1,2}-\d{1,2} \d{1,2}:\d{1,2}:\d{1,2},\d{1,6}).*"
        r"Epoch\[0\] Batch \[\d+-(?P<iteration>\d+)\]\s+Speed: (?:[\d.]+)"
    ),
    "mllog": re.compile(r'"iteration": (\d+), "seconds": ([\d.]+)'),
}


def build(folder: Path, size: int, each: int) -> dict[str, list[Path]]:
    """Write logs of about `each` bytes, `size` bytes in all: kind -> files."""
    number = max(1, round(size / len(LINES) / each))
    files = {kind: [folder / f"{kind}-{n}.log" for n in range(number)] for kind in LINES}
    for kind, (first, *others) in files.items():
        write_log(kind, first, each)
        for path in others:
            shutil.copyfile(first, path)
    return files


def write_log(kind: str, path: Path, size: int) -> None:
    """Write one log of at least `size` bytes."""
    with path.open("w") as stream:
        stream.write(HEADS[kind])
        for iteration in count(1):
            stream.write(LINES[kind](iteration))
            if iteration >= 120 and stream.tell() > size:
                break
        stream.write(TAILS.get(kind, ""))


def plain(kind: str, path: Path) -> float:
    """The published extractors' way: every line, a regular expression, two time stamps."""
    times = {}
    with path.open() as stream:
        for line in stream.readlines():
            match = PLAIN[kind].search(line)
            if match and kind == "ngc-mxnet":
                times.setdefault(match["iteration"], match["date"])
            elif match:
                times[match[1]] = match[2]
    start, stop = (seconds(times[iteration]) for iteration in ("20", "120"))
    return BATCH * 100 / (stop - start)


def seconds(stamp: str) -> float:
    """A time stamp as seconds."""
    if "-" not in stamp:
        return float(stamp)
    return datetime.strptime(stamp, "%Y-%m-%d %H:%M:%S,%f").timestamp()


def by_plain_loop(files: dict[str, list[Path]]) -> Iterator[float]:
    for kind, paths in files.items():
        for path in paths:
            yield plain(kind, path)


def by_reperf(files: dict[str, list[Path]], processes: int) -> Iterator[float]:
    paths = [path for some in files.values() for path in some]
    for result in measure_paths(paths, MeasureRequest(Method()), processes):
        if result.measured.throughput is None:
            raise SystemExit(f"{result.measured.log}: {result.measured.reason}")
        yield result.measured.throughput


def timed(work: Callable[[], Iterator[float]]) -> tuple[float, list[float]]:
    start = time.perf_counter()
    found = list(work())
    return time.perf_counter() - start, found


def compare(files: dict[str, list[Path]]) -> None:
    """Give the same files to each way in turn, some at a time, and print the rates over all."""
    size = sum(path.stat().st_size for some in files.values() for path in some)
    total = dict.fromkeys(WAYS, 0.0)
    for start in range(0, max(map(len, files.values())), TURN):
        turn = {kind: paths[start : start + TURN] for kind, paths in files.items()}
        for way, work in WAYS.items():
            seconds, found = timed(partial(work, turn))
            total[way] += seconds
            if {round(number, 1) for number in found} != {round(BATCH / STEP, 1)}:
                raise SystemExit(f"{way}: found other numbers: {set(found)}")
    for way, seconds in total.items():
        ratio = total["plain loop"] / seconds
        print(f"  {way:<20} {size / seconds / 1e6:8.0f} MB/s   {ratio:5.1f} x the plain loop")


WAYS: dict[str, Callable[[dict[str, list[Path]]], Iterator[float]]] = {
    "reperf, 1 process": partial(by_reperf, processes=1),
    "reperf, 2 processes": partial(by_reperf, processes=2),
    "plain loop": by_plain_loop,
}
TURN = 4
"""Logs of each kind that one way gets before the next one's turn."""


def peak_memory(kind: str, folder: Path, size: int) -> float:
    """The most MB that a process held which measured one log of about `size` bytes."""
    path = folder / f"{kind}-{size}.log"
    write_log(kind, path, size)
    program = (
        "import resource, sys; from reperf.cli import main; main(['measure', sys.argv[1]]); "
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
    )
    command = [sys.executable, "-c", program, path]
    answer = subprocess.run(command, capture_output=True, text=True, check=True)
    path.unlink()
    return int(answer.stdout.splitlines()[-1]) / 1024


def widest_window(folder: Path, records: int) -> None:
    """Measure a log of so many records from its warm-up to its end, as `--window all` does."""
    path = folder / "widest.log"
    with path.open("w") as stream:
        stream.write(HEADS["oneflow"])
        stream.writelines(map(oneflow_lines, range(1, records + 1)))
    request = MeasureRequest(Method(widest=True))
    seconds, [result] = timed(lambda: measure_paths([path], request, 1))
    measured, size = result.measured, path.stat().st_size / 1e6
    if measured.throughput is None:
        raise SystemExit(f"{path}: {measured.reason}")
    print(
        f"--window all, {records} records, {size:.0f} MB: {seconds:.2f} s, "
        f"{size / seconds:.0f} MB/s, measured {measured.first}:{measured.last}"
    )
    path.unlink()


def no_line_ends(folder: Path, size: int) -> None:
    """Look for records in a file that holds no line end."""
    path = folder / "no-line-ends.log"
    piece = b"train: epoch 0, iter 20, loss: 6.9 and more of it / " * (1 << 14)
    with path.open("wb") as stream:
        while stream.tell() < size:
            stream.write(piece)
    seconds, [result] = timed(lambda: measure_paths([path], MeasureRequest(Method()), 1))
    if result.measured.throughput is not None:
        raise SystemExit(f"{path}: measured where nothing is")
    print(f"a file without line ends: {path.stat().st_size / seconds / 1e6:.0f} MB/s")
    path.unlink()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--gigabytes", type=float, default=2.0, help="of logs, in all")
    parser.add_argument("--megabytes-each", type=float, default=32, help="of one log")
    parser.add_argument("--short", type=int, default=1000, help="logs that are short")
    parser.add_argument("--records", type=int, default=8_600_000, help="of one --window all")
    parser.add_argument("--folder", type=Path, help="where the logs are built; left out, in /tmp")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as scratch:
        folder = Path(scratch)
        each = int(options.megabytes_each * 1e6)
        files = build(folder, int(options.gigabytes * 1e9), each)
        for kind, paths in files.items():
            print(f"{kind}: {len(paths)} logs of {paths[0].stat().st_size / 1e6:.0f} MB")
            compare({kind: paths})
        print("all of them")
        compare(files)
        for path in (path for paths in files.values() for path in paths):
            path.unlink()
        for number in range(options.short):
            write_log("oneflow", folder / f"{number}.log", 1 << 14)
        seconds, found = timed(lambda: by_reperf({"": [folder]}, 1))
        print(f"{len(found)} logs of 16 kB in one process: {seconds:.2f} s")
        widest_window(folder, options.records)
        no_line_ends(folder, 20 * each)
        for kind in LINES:
            small, large = (peak_memory(kind, folder, size) for size in (each, 20 * each))
            print(
                f"{kind}: peak memory {small:.0f} MB for {each / 1e6:.0f} MB, "
                f"{large:.0f} MB for {20 * each / 1e6:.0f} MB"
            )


if __name__ == "__main__":
    main()
