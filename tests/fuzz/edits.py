"""Random edits of what a finished report stands on: does the next call see them?

    python tests/fuzz/edits.py [EDITS] [SEED]

Makes a small report and copies it for each edit. In the copy one file is changed that the report
stands on, or that was built: bytes flipped or cut, doubled, a digit changed, the file removed or
replaced by its neighbour, with a new time of modification or the old one. Half of the time
Snakemake's memory is removed as well. After the next call, whatever it said, all that is built must
be what the logs and records that are there now give, byte for byte.
"""

import os
import random
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from small_benchmark import ROOT, SMALL, Benchmark, new_benchmark

REPORT = {
    "topologies": ["1n1g"],
    "suites": [
        SMALL["suites"][1] | {"name": name, "systems": ["pytorch"], "repeats": 2}
        for name in ("one", "two")
    ],
}
BUILT = (
    "results/[!.]*.*",
    "results/suites/*/*.csv",
    "figures/*.*",
    "figures/published/[!.]*",
    "archive/*.zip",
)
STOOD_ON = ("results/runs/*/*/*/*/*.*", "results/.seals/**/*.json")

# Builds everything again in the working folder, by the library alone.
BUILD = """
import json
from pathlib import Path
import yaml
from reperf.layout import tables_of
from reperf.archive.rebuild import make_results
from reperf.archive.contents import write_archive
from reperf.reruns import complete
from reperf.config import load_report
from reperf.errors import ReperfError
from reperf.machine import resolve
from reperf.drawing.figures import draw_published
from reperf.training.record import records_of
from reperf.report import write_report
from reperf.measuring.tables import (
    MEASUREMENTS,
    SUMMARY,
    join_tables,
    read_measurements,
    read_summary,
)

report = resolve(load_report(yaml.safe_load(Path("local/report.yaml").read_text())))
names = [suite.name for suite in report.suites]
for suite in report.suites:
    make_results(report.alone(suite.name), tuple(report.cells(suite)), report.runs(suite))
tables = [tables_of(name) for name in names]
join_tables([table for table, _ in tables], "results/measurements.csv", MEASUREMENTS)
join_tables([table for _, table in tables], "results/summary.csv", SUMMARY)
draw_published("figures/published")
write_report(
    report,
    records_of(run for suite in report.suites for run in report.runs(suite)),
    read_measurements("results/measurements.csv"),
    read_summary("results/summary.csv"),
    figures=Path("figures"),
    html=Path("results/report.html"),
    markdown=Path("results/report.md"),
)
for name in names:
    write_archive(report.alone(name), Path(f"archive/{name}.zip"))
try:
    tables = Path("results/summary.csv"), Path("results/measurements.csv")
    complete(*tables, Path("results/complete.txt"), "local")
except ReperfError:
    pass
"""


def flip(content: bytes, chance: random.Random) -> bytes:
    at = chance.randrange(len(content))
    return content[:at] + bytes([content[at] ^ 1 << chance.randrange(8)]) + content[at + 1 :]


def change_a_digit(content: bytes, chance: random.Random) -> bytes:
    places = [at for at, byte in enumerate(content) if chr(byte).isdigit()]
    at = chance.choice(places or [0])
    return content[:at] + str((content[at] - 47) % 10).encode() + content[at + 1 :]


EDITS: dict[str, Callable[[bytes, random.Random], bytes]] = {
    "flip": flip,
    "digit": change_a_digit,
    "cut": lambda content, chance: content[: chance.randrange(len(content))],
    "double": lambda content, _: content + content,
    "empty": lambda _content, _: b"",
}


def files_of(folder: Path, patterns: tuple[str, ...]) -> list[Path]:
    found = {path for pattern in patterns for path in folder.glob(pattern) if path.is_file()}
    return sorted(found)


def edit(folder: Path, chance: random.Random) -> str:
    """Edit one file; returns which and how."""
    groups = [files for pattern in (*STOOD_ON, *BUILT) if (files := files_of(folder, (pattern,)))]
    files = chance.choice(groups)
    path = chance.choice(files)
    before = path.stat()
    kind = chance.choice([*EDITS, "remove", "neighbour"])
    if kind == "remove":
        path.unlink()
    else:
        content = path.read_bytes()
        path.write_bytes(
            chance.choice(files).read_bytes()
            if kind == "neighbour"
            else EDITS[kind](content, chance)
        )
        if chance.random() < 0.5:
            os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
            kind += " (old time)"
    if chance.random() < 0.5:
        shutil.rmtree(folder / ".snakemake")
        kind += " (no memory)"
    return f"{path.relative_to(folder)}: {kind}"


def contradictions(benchmark: Benchmark, spare: Path) -> list[str]:
    """What is built and is not what the logs and records there give."""
    shutil.rmtree(spare, ignore_errors=True)
    shutil.copytree(benchmark.folder, spare, symlinks=True)
    for path in files_of(spare, BUILT):
        path.unlink()
    built = Benchmark(spare).call(sys.executable, "-c", BUILD)
    assert built.returncode == 0, built.stdout
    wanted = {path.relative_to(spare): path.read_bytes() for path in files_of(spare, BUILT)}
    there = files_of(benchmark.folder, BUILT)
    found = {path.relative_to(benchmark.folder): path.read_bytes() for path in there}
    names = sorted(wanted.keys() | found.keys())
    return [str(name) for name in names if wanted.get(name) != found.get(name)]


def main(edits: int, seed: int) -> int:
    chance = random.Random(seed)
    results: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as temporary:
        finished = new_benchmark(Path(temporary) / "finished", ROOT / ".envs")
        finished.configure(**REPORT)
        answer = finished.snakemake()
        assert answer.returncode == 0, answer.stdout
        assert not contradictions(finished, Path(temporary) / "spare")
        for number in range(1, edits + 1):
            benchmark = Benchmark(Path(temporary) / "benchmark")
            shutil.rmtree(benchmark.folder, ignore_errors=True)
            shutil.copytree(finished.folder, benchmark.folder, symlinks=True)
            what = edit(benchmark.folder, chance)
            answer = benchmark.snakemake()
            wrong = contradictions(benchmark, Path(temporary) / "spare")
            result = "refused" if answer.returncode else "rebuilt or unchanged"
            if wrong or "Traceback" in answer.stdout:
                result = "WRONG"
                print(answer.stdout[-3000:], *wrong, sep="\n")
            results[result] += 1
            print(f"{number:>4} {result:<22} {what}", flush=True)
    print(f"seed {seed}: {dict(results)}")
    return 1 if results["WRONG"] else 0


if __name__ == "__main__":
    sys.exit(main(*map(int, [*sys.argv[1:], *("100", "1")[len(sys.argv) - 1 :]])))
