"""Which device of a node is slow by itself, according to finished runs in this folder."""

import json
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from reperf.errors import ReperfError
from reperf.layout import RUN_FOLDER, RUN_RECORD
from reperf.measuring.margin_rule import judge, rank_words
from reperf.records.diagnosis import Finding, Verdict
from reperf.records.run_record import RunRecord
from reperf.text import count

MARGIN = 1.0
"""Percent."""
_RUNS = RUN_FOLDER.format(suite="*", entry="*", topology="*", repeat="*")


def findings_of_runs(folder: Path = Path()) -> Iterator[Finding]:
    """A row for each node on which runs of a work folder have timed each device by itself."""
    rounds: dict[str, list[dict[str, float]]] = defaultdict(list)
    for path in sorted(folder.glob(f"{_RUNS}/{RUN_RECORD}")):
        with suppress(ReperfError, OSError, ValueError, AttributeError):
            # Few runs have timed ranks; checking a whole record takes a hundred times as long.
            if not any(json.loads(path.read_bytes()).get("rank_seconds_alone") or ()):
                continue
            record = RunRecord.read(path)
            each = record.run.devices_per_node
            for at, node in enumerate(record.nodes or (record.host.hostname,)):
                times = record.rank_seconds_alone[each * at : each * (at + 1)]
                rounds[node].append({str(gpu): 1 / one for gpu, one in enumerate(times) if one})
    for node, runs in rounds.items():
        with suppress(ReperfError):  # one device, or one run
            ruling = judge(runs, MARGIN, among=len(rounds))
            slow = "; ".join(map(rank_words, ruling.slow))
            told = f"in {count(len(runs), 'run')} of this folder"
            verdict = Verdict("ok", f"none of {len(ruling.places)} slower than the others {told}")
            if slow:
                advice = "look at its clock, its power limit and its cooling"
                verdict = Verdict("warning", f"{slow} {told}", advice)
            yield verdict.on("devices by themselves", node)
