"""Random edits of what a finished report stands on: does the next call see them?

    python tests/fuzz/edits.py [EDITS] [SEED]

Makes a small report and copies it for each edit. In the copy one file is changed that the report
stands on, or that was built: bytes flipped or cut, doubled, a digit changed, the file removed or
replaced by its neighbour or changed for it, with a new time of modification or the old one; two
runs change places, or another configuration is called, and then the first one again. Half of the
time Snakemake's memory is removed as well. After each call, whatever it said, all that is built
must be what the configuration, the logs and the records that are there now give, byte for byte.
"""

import os
import random
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.helpers.small_benchmark import ROOT, TOY, Benchmark, new_benchmark

SUITES = [
    suite | {"name": name, "systems": ["stand-in"], "topologies": ["1n1g"], "repeats": 2}
    for name, suite in zip(("one", "two"), TOY["suites"], strict=True)
]
REPORT = {"topologies": ["1n1g"], "suites": SUITES}
# None of them needs another run.
OTHERS = {
    "title": {"title": "another"},
    "window": {"window": {"warmup": 1, "measured": 3}},
    "one suite": {"suites": SUITES[:1]},
    "other order": {"suites": SUITES[::-1]},
    "fewer repeats": {"suites": [suite | {"repeats": 1} for suite in SUITES]},
    "time limit": {"time_limit": 90},
}
BUILT = (
    "results/[!.]*.csv",
    "results/report.*",
    "results/complete.txt",
    "results/suites/*/*.csv",
    "figures/*.*",
    "figures/published/[!.]*",
    "archive/*.zip",
)
STOOD_ON = (
    "results/runs/*/*/*/*/train.log",
    "results/runs/*/*/*/*/run.json",
    "results/runs/*/*/*/*/plan.json",
    "results/suites/*/*.json",
    "results/plan.json",
    "results/made.json",
    "data/*/*/manifest.json",
    "data/*/plan.json",
)

# Builds everything again in the working folder, by the steps alone.
BUILD = """
from importlib import import_module
from pathlib import Path

from reperf.config import load_report
from reperf.errors import ReperfError
from reperf.machine import resolve
from reperf.plans.planning import Plans
from reperf.written import read_written


def do(step, *what):
    import_module(f"reperf.steps.{step}").run(*what)


Path("results/made.json").unlink()
report = resolve(load_report(read_written("config.yaml")))
Plans(report).write()
names = [suite.name for suite in report.suites]
for name in names:
    do("measure", name)
    do("summarise", name)
    do("draw_figures", name)
do("join_tables")
do("report")
for name in names:
    do("archive", name)
try:
    do("complete")
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
    path, other = chance.choice(files), chance.choice(files)
    before, content = path.stat(), path.read_bytes()
    kind = chance.choice([*EDITS, "remove", "neighbour", "exchange"])
    if kind == "remove":
        path.unlink()
    else:
        make = EDITS.get(kind, lambda *_: other.read_bytes())
        path.write_bytes(make(content, chance))
        if kind == "exchange":
            other.write_bytes(content)
        if chance.random() < 0.5:
            os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
            kind += " (old time)"
    return f"{path.relative_to(folder)}: {kind}"


def exchange_runs(folder: Path, chance: random.Random) -> str:
    """Let two runs change places, of one suite or of two; returns which."""
    one, other = chance.sample(sorted(folder.glob("results/runs/*/*/*/*")), 2)
    aside = folder / "aside"
    one.rename(aside)
    other.rename(one)
    aside.rename(other)
    return f"{one.relative_to(folder)}: exchange with {other.relative_to(folder)}"


def contradictions(benchmark: Benchmark, spare: Path, published: Path) -> list[str]:
    """What is built and is not what the configuration, the logs and the records there give.

    Args:
        spare: a folder that may be spoilt.
        published: the figures of the published reports, as they must be.
    """
    shutil.rmtree(spare, ignore_errors=True)
    shutil.copytree(benchmark.folder, spare, symlinks=True)
    for path in files_of(spare, BUILT):
        path.unlink()
    shutil.copytree(published, spare / "figures/published", dirs_exist_ok=True)
    built = Benchmark(spare).call(sys.executable, "-c", BUILD)
    assert built.returncode == 0, built.stdout
    wanted = {path.relative_to(spare): path.read_bytes() for path in files_of(spare, BUILT)}
    there = files_of(benchmark.folder, BUILT)
    found = {path.relative_to(benchmark.folder): path.read_bytes() for path in there}
    # Tables of a suite that is asked for no more stay where they are.
    names = wanted.keys() | (found.keys() & {Path("results/complete.txt")})
    return [str(name) for name in sorted(names) if wanted.get(name) != found.get(name)]


class Fuzz:
    """Copies of a finished report, each edited and called again.

    Args:
        folder: for the report and its copies.
        seed: of all that is chosen by chance.
    """

    def __init__(self, folder: Path, seed: int) -> None:
        self._chance = random.Random(seed)
        self._spare = folder / "spare"
        self._benchmark = Benchmark(folder / "benchmark")
        self._finished = new_benchmark(folder / "finished", ROOT / ".envs")
        self._finished.configure(**REPORT)
        answer = self._finished.snakemake()
        assert answer.returncode == 0, answer.stdout
        assert not self._contradictions(self._finished)

    def edit(self) -> tuple[str, str]:
        """Edit a copy, and call; returns what came of it, and the edit."""
        benchmark, chance = self._benchmark, self._chance
        shutil.rmtree(benchmark.folder, ignore_errors=True)
        shutil.copytree(self._finished.folder, benchmark.folder, symlinks=True)
        way = chance.choice([edit] * 6 + [exchange_runs, None])
        what = way(benchmark.folder, chance) if way else "called in turn: "
        turns = [{}] if way else [OTHERS[chance.choice([*OTHERS])] for _ in range(2)] + [{}]
        if chance.random() < 0.5:
            shutil.rmtree(benchmark.folder / ".snakemake")
            what += " (no memory)"
        for changes in turns:
            benchmark.configure(**REPORT | changes)
            answer = benchmark.snakemake()
            what += "" if way else f" {', '.join(changes) or 'the first one'}"
            wrong = self._contradictions(benchmark)
            if wrong or "Traceback" in answer.stdout:
                print(answer.stdout[-3000:], *wrong, sep="\n")
                return "WRONG", what
        return "refused" if answer.returncode else "rebuilt or unchanged", what

    def _contradictions(self, benchmark: Benchmark) -> list[str]:
        return contradictions(benchmark, self._spare, self._finished.folder / "figures/published")


def main(edits: int, seed: int) -> int:
    results: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as temporary:
        fuzz = Fuzz(Path(temporary), seed)
        for number in range(1, edits + 1):
            result, what = fuzz.edit()
            results[result] += 1
            print(f"{number:>4} {result:<22} {what}", flush=True)
    print(f"seed {seed}: {dict(results)}")
    return 1 if results["WRONG"] else 0


if __name__ == "__main__":
    sys.exit(main(*map(int, [*sys.argv[1:], *("100", "1")[len(sys.argv) - 1 :]])))
