"""Random edits of what a finished report stands on: does a page or an archive come of them?

    python tests/fuzz/edits.py [EDITS] [SEED]

Makes a small report and copies it for each edit. In the copy one file is changed that the report
stands on, or that was built: bytes flipped or cut, doubled, a digit changed, the file removed or
replaced by its neighbour or changed for it, with a new time of modification or the old one; two
runs change places, or another configuration is called, and then the first one again. Half of the
time Snakemake's memory is removed as well. A page or an archive that a call makes, whatever it
said, must be what the configuration, the logs and the records there give, byte for byte.
"""

import os
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.helpers.small_benchmark import ROOT, TOY, Benchmark, new_benchmark
from tests.unit.logs.edited import EDITS

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
SHOWN = ("results/report.*", "archive/one.zip", "archive/two.zip")
"""What leaves the folder; archives of other configurations, which are kept, stay as they are."""
BUILT = (
    "results/[!.]*.csv",
    "results/report.*",
    "results/complete.txt",
    "results/suites/*/*.csv",
    "figures/*.*",
    "archive/*.zip",
)
STOOD_ON = (
    "results/runs/*/*/*/*/train.log",
    "results/runs/*/*/*/*/run.json",
    "results/runs/*/*/*/*/plan.json",
    "results/suites/*/*.json",
    "results/plan.json",
    "data/*/*/manifest.json",
    "data/*/plan.json",
    "figures/published/[!.]*",
)
# What makes them from logs and records.
RULES = (
    *("remember", "measure", "summarise", "join_tables"),
    *("draw_unscaled_figures", "report", "archive"),
)
OF_LOGS = (
    "a bad disk",
    "somebody changes a digit",
    "a run that was killed, or a copy that broke off",
)
CHANGES: dict[str, Callable[[bytes, bytes, Random], bytes]] = {
    **{name: EDITS[name] for name in OF_LOGS},
    "double": lambda content, _other, _chance: content * 2,
    "empty": lambda _content, _other, _chance: b"",
    "neighbour": lambda _content, other, _chance: other,
    "exchange": lambda _content, other, _chance: other,
}


def files_of(folder: Path, patterns: tuple[str, ...]) -> list[Path]:
    found = {path for pattern in patterns for path in folder.glob(pattern) if path.is_file()}
    return sorted(found)


def edit(folder: Path, chance: Random) -> str:
    """Edit one file; returns which and how."""
    groups = [files for pattern in (*STOOD_ON, *BUILT) if (files := files_of(folder, (pattern,)))]
    files = chance.choice(groups)
    path, other = chance.choice(files), chance.choice(files)
    before, content = path.stat(), path.read_bytes()
    kind = chance.choice([*CHANGES, "remove"])
    if kind == "remove":
        path.unlink()
    else:
        path.write_bytes(CHANGES[kind](content or b" ", other.read_bytes(), chance))
        if kind == "exchange":
            other.write_bytes(content)
        if chance.random() < 0.5:
            os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
            kind += " (old time)"
    return f"{path.relative_to(folder)}: {kind}"


def exchange_runs(folder: Path, chance: Random) -> str:
    """Let two runs change places, of one suite or of two; returns which."""
    one, other = chance.sample(sorted(folder.glob("results/runs/*/*/*/*")), 2)
    aside = folder / "aside"
    one.rename(aside)
    other.rename(one)
    aside.rename(other)
    return f"{one.relative_to(folder)}: exchange with {other.relative_to(folder)}"


def shown_in(folder: Path) -> dict[Path, bytes]:
    return {path.relative_to(folder): path.read_bytes() for path in files_of(folder, SHOWN)}


def contradictions(benchmark: Benchmark, spare: Path, before: dict[Path, bytes]) -> list[str]:
    """The pages and archives that a call has made, and that the logs and records do not give.

    Args:
        spare: a folder that may be spoilt.
        before: the pages and archives before the call.
    """
    found = shown_in(benchmark.folder)
    made = {name: content for name, content in found.items() if before.get(name) != content}
    if not made:
        return []
    shutil.rmtree(spare, ignore_errors=True)
    shutil.copytree(benchmark.folder, spare, symlinks=True)
    for path in files_of(spare, BUILT):
        path.unlink()
    Benchmark(spare).snakemake("--allowed-rules", *RULES, "--retries", "0")
    wanted = shown_in(spare)
    return [str(name) for name, content in made.items() if wanted.get(name) != content]


def edited_and_called(finished: Benchmark, top: Path, chance: Random) -> tuple[str, str]:
    """Edit a copy of a finished report, and call; returns what came of it, and the edit."""
    benchmark = Benchmark(top / "benchmark")
    shutil.rmtree(benchmark.folder, ignore_errors=True)
    shutil.copytree(finished.folder, benchmark.folder, symlinks=True)
    way = chance.choice([edit] * 6 + [exchange_runs, None])
    what = way(benchmark.folder, chance) if way else "called in turn: "
    turns = [{}] if way else [OTHERS[chance.choice([*OTHERS])] for _ in range(2)] + [{}]
    if chance.random() < 0.5:
        shutil.rmtree(benchmark.folder / ".snakemake")
        what += " (no memory)"
    for changes in turns:
        benchmark.configure(**REPORT | changes)
        before = shown_in(benchmark.folder)
        answer = benchmark.snakemake("--retries", "0")
        what += "" if way else f" {', '.join(changes) or 'the first one'}"
        wrong = contradictions(benchmark, top / "spare", before)
        if wrong or "Traceback" in answer.stdout:
            print(answer.stdout[-3000:], *wrong, sep="\n")
            return "WRONG", what
    return "refused" if answer.returncode else "rebuilt or unchanged", what


def main(edits: int, seed: int) -> int:
    results: Counter[str] = Counter()
    chance = Random(seed)
    with tempfile.TemporaryDirectory() as temporary:
        top = Path(temporary)
        finished = new_benchmark(top / "finished", ROOT / ".envs")
        finished.configure(**REPORT)
        finished.made()
        assert not contradictions(finished, top / "spare", {})
        for number in range(1, edits + 1):
            result, what = edited_and_called(finished, top, chance)
            results[result] += 1
            print(f"{number:>4} {result:<22} {what}", flush=True)
    print(f"seed {seed}: {dict(results)}")
    return 1 if results["WRONG"] else 0


if __name__ == "__main__":
    sys.exit(main(*map(int, [*sys.argv[1:], *("100", "1")[len(sys.argv) - 1 :]])))
