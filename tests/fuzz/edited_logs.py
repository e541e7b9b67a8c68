"""Logs cut, torn and merged at random: is every number right, or absent?

    python tests/fuzz/edited_logs.py [--edits 10000] [--seed 1] [--keep FOLDER] [FOLDER...]

Takes the excerpts in tests/data/logs and written logs of every format, or else the logs in folders
of your own that can be measured in their widest window. Edits each in every way of
tests/unit/logs/edited.py that is one of such logs, in turn, and measures what is left. A number
must be within 1 % of the truth: that of the unedited log between the same iterations, or of one of
the two that were merged.
Where an edit made a line print a number that was in neither log, nothing else in the log may
contradict it; where the lines of an evaluation are lost, nothing tells of its time. Such numbers
are counted apart. --keep names a folder for the logs that gave a wrong number.
"""

import argparse
import random
import sys
from collections import Counter, defaultdict
from itertools import cycle, islice
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from tests.unit.logs.edited import EDITS
from tests.unit.logs.sources import EDITED, LOST, REFUSED, RIGHT, WRONG, all_sources, excerpts

VERDICTS = (RIGHT, REFUSED, EDITED, LOST, WRONG)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--edits", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=Path)
    parser.add_argument("folders", type=Path, nargs="*", metavar="FOLDER")
    options = parser.parse_args(arguments)
    chance = random.Random(options.seed)
    sources = [one for folder in options.folders for one in excerpts(folder)] or all_sources()
    print(f"{len(sources)} logs, {options.edits} edits, seed {options.seed}", flush=True)
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    turns = [(source, edit) for source in sources for edit in EDITS if source.takes(edit)]
    chance.shuffle(turns)  # a few edits alone reach logs of all formats
    for number, (source, edit) in enumerate(islice(cycle(turns), options.edits), 1):
        # Half of the merges are of one format: those of two are mostly refused at once.
        alike = [one for one in sources if one.log_format == source.log_format]
        other = chance.choice(alike if chance.random() < 0.5 else sources).content
        content = edit(source.content, other, chance)
        verdict = source.verdict(edit, content, other)
        counts[edit.__name__][verdict] += 1
        if verdict == WRONG:
            gave = [one.throughput for one in source.measured(content)]
            print(f"{number}: {source.name}: {edit.__name__}: {gave}", flush=True)
            if options.keep is not None:
                options.keep.mkdir(parents=True, exist_ok=True)
                (options.keep / f"{number}.log").write_bytes(content)
    print(f"{'':<28}" + "".join(f"{verdict:>17}" for verdict in VERDICTS))
    counts["all"] = sum(counts.values(), Counter())
    for name, found in counts.items():
        print(f"{name:<28}" + "".join(f"{found[verdict]:>17}" for verdict in VERDICTS))
    return 1 if counts["all"][WRONG] else 0


if __name__ == "__main__":
    sys.exit(main())
