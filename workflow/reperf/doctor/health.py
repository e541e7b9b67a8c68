"""What other tools found: the output of dcgmi diag, NHC and nccl-tests in logs/health/.

dcgmi's JSON differs from version to version, but each version lists tests with a name and results
with a status. NHC's file holds the lines of its log, and ends with its exit status: `exit N`. The
doc/PERFORMANCE.md of nccl-tests describes its table.
"""

import json
import re
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from reperf.errors import ReperfError
from reperf.layout import RUN_FOLDER, RUN_RECORD
from reperf.measuring.margin_rule import judge_each, rank_words
from reperf.records.diagnosis import Finding, Verdict
from reperf.records.run_record import RunRecord
from reperf.text import count, listed

FOLDER = Path("logs/health")
NEAREST_BYTES = 64 * 10**6
"""The size that is shown beside the largest: what the doctor's own trial adds up."""
SHOWN_FAILURES = 3

_NHC = re.compile(
    r"^ERROR:\s+nhc:\s+Health check failed:\s*(?P<why>.+)|^exit (?P<exit>\d+)\s*$"
    r"|/node-mark-online\b",
    re.MULTILINE,
)
_RANK = re.compile(r"^#\s+Rank\s+\d+ .*?\bon\s+(\S+) device", re.MULTILINE)
# Bytes, elements, type, operation and root; then time, algorithm's and bus bandwidth, wrong values.
_TRANSFER = re.compile(
    r"^\s*(\d+)\s+\d+\s+\w+(?:\s+\S+){2}\s+[\d.]+\s+[\d.]+\s+([\d.]+)\s+(\d+|N/A)\b", re.MULTILINE
)


def findings_of_others(nodes: tuple[str, ...], folder: Path = FOLDER) -> Iterator[Finding]:
    """A row for each file in the folder, about the node that its name begins with, if any."""
    for path in sorted(folder.glob("*")):
        text = path.read_text(encoding="utf-8", errors="replace")
        node = path.name.partition(".")[0]
        where = (node,) if node in nodes or len(nodes) != 1 else nodes
        if '"results"' in text and '"tests"' in text:
            yield _dcgmi(text).on("dcgmi diag", *where)
        elif _RANK.search(text) and _TRANSFER.search(text):
            yield _nccl_tests(text).on("nccl-tests", *dict.fromkeys(_RANK.findall(text)))
        elif _NHC.search(text):
            yield _nhc(text).on("NHC", *where)
        else:
            what = f"{path}: not the output of dcgmi diag -j, NHC or nccl-tests"
            yield Verdict("warning", what, "docs/doctor.md says how to write it").on(
                "health", *where
            )


def _dcgmi(text: str) -> Verdict:
    try:
        tests = list(_tests(json.loads(text[text.index("{") : text.rindex("}") + 1])))
    except ValueError:
        return Verdict("warning", "its JSON is cut off", "run dcgmi diag -j again")
    results = [(test["name"], result) for test in tests for result in test["results"]]
    bad: dict[str, list[str]] = {"fail": [], "warn": []}
    for name, result in results:
        status = str(result.get("status", "")).lower()
        if status in bad:
            gpu = result.get("gpu_ids", result.get("entity_id", ""))
            bad[status].append(f"{name} of GPU {gpu}: {_words(result.get('warnings'))}")
    if worst := bad["fail"] or bad["warn"]:
        shown = listed(worst, SHOWN_FAILURES, "; ")
        return Verdict("error" if bad["fail"] else "warning", shown, "see NVIDIA's guide to DCGM")
    passed = sum(str(result.get("status", "")).lower() == "pass" for _, result in results)
    return Verdict(
        "ok" if passed else "not there", f"{passed} of {count(len(results), 'result')} passed"
    )


def _tests(part: Any) -> Iterator[dict[str, Any]]:  # noqa: ANN401 - JSON
    """The tests in a document, at any depth."""
    if isinstance(part, dict) and {"name", "results"} <= part.keys():
        yield part
        return
    for inner in (
        part.values() if isinstance(part, dict) else part if isinstance(part, list) else ()
    ):
        yield from _tests(inner)


def _words(warnings: Any) -> str:  # noqa: ANN401 - JSON
    """The text of warnings, which are a text, or a list of texts or of objects."""
    listed = warnings if isinstance(warnings, list) else [warnings]
    texts = (part.get("warning") if isinstance(part, dict) else part for part in listed)
    return "; ".join(str(text) for text in texts if text) or "no reason given"


def _nhc(text: str) -> Verdict:
    lines = [*_NHC.finditer(text)]
    whys = [line["why"] for line in lines if line["why"]]
    last = lines[-1]
    if last["why"] or (last["exit"] or "0") != "0":
        why = whys[-1].strip() if whys else f"exit status {last['exit']}"
        return Verdict("error", why, "NHC takes the node out of service until it is repaired")
    return Verdict("ok", "all checks passed")


def _nccl_tests(text: str) -> Verdict:
    rows = [(int(size), float(speed), wrong) for size, speed, wrong in _TRANSFER.findall(text)]
    shown = dict.fromkeys((min(rows, key=lambda row: abs(row[0] - NEAREST_BYTES)), max(rows)))
    speeds = ", ".join(f"{size / 1e6:,.4g} MB at {speed:.3g} GB/s" for size, speed, _ in shown)
    what = f"{count(len(_RANK.findall(text)), 'rank')}: {speeds}"
    if any(wrong not in ("0", "N/A") for *_, wrong in rows):
        return Verdict("error", f"{what}; some sums are wrong", "a link or a GPU is broken")
    return Verdict("ok", what)


MARGIN = 1.0  # percent
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
    for node, ruling in judge_each(rounds, MARGIN).items():  # none of one device, or one run
        slow = "; ".join(map(rank_words, ruling.slow))
        where = f"in {count(len(rounds[node]), 'run')} of this folder"
        verdict = Verdict("ok", f"none of {len(ruling.places)} slower than the others {where}")
        if slow:
            advice = "look at its clock, its power limit and its cooling"
            verdict = Verdict("warning", f"{slow} {where}", advice)
        yield verdict.on("devices by themselves", node)
