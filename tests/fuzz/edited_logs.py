"""Logs cut, torn and merged at random: is every number right, or absent?

    python tests/fuzz/edited_logs.py [EDITS] [SEED]

Takes the excerpts in tests/data/logs and written logs of every format, and edits each in every way
of tests/unit/logs/edited.py that is one of such logs, in turn. What is left is measured. A number
must be within 1 % of the truth: that of the unedited log between the same iterations, or of one of
the two that were merged. Where an edit made a line print a number that was in neither log, nothing
else in the log may contradict it; where the lines of an evaluation are lost, nothing tells of its
time. Such numbers are counted apart.
"""

import random
import sys
from collections import Counter, defaultdict
from itertools import cycle, islice
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from tests.unit.logs.edited import EDITS
from tests.unit.logs.sources import EDITED, LOST, REFUSED, RIGHT, WRONG, all_sources

VERDICTS = (RIGHT, REFUSED, EDITED, LOST, WRONG)


def main(edits: int, seed: int) -> int:
    chance, sources = random.Random(seed), all_sources()
    print(f"{len(sources)} logs, {edits} edits, seed {seed}", flush=True)
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    turns = [(source, edit) for source in sources for edit in EDITS if source.takes(edit)]
    chance.shuffle(turns)  # a few edits alone reach logs of all formats
    for number, (source, edit) in enumerate(islice(cycle(turns), edits), 1):
        # Half of the merges are of one format: those of two are mostly refused at once.
        alike = [one for one in sources if one.log_format == source.log_format]
        other = chance.choice(alike if chance.random() < 0.5 else sources).content
        content = EDITS[edit](source.content, other, chance)
        counts[edit][verdict := source.verdict(edit, content, other)] += 1
        if verdict == WRONG:
            gave = [one.throughput for one in source.measured(content)]
            print(f"{number}: {source.name}: {edit}: {gave}", flush=True)
    counts["all"] = sum(counts.values(), Counter())
    for name, found in counts.items():
        print(*(f"{found[verdict]:>7} {verdict}" for verdict in VERDICTS), f"  {name}")
    return 1 if counts["all"][WRONG] else 0


if __name__ == "__main__":
    sys.exit(main(*map(int, [*sys.argv[1:], *("10000", "1")[len(sys.argv) - 1 :]])))
