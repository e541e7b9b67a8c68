"""The table of verdicts and the rows for a spreadsheet, whatever logs and reasons say."""

import csv
import re
from collections.abc import Iterable
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st
from reperf.logs.checks import SENTENCES
from reperf.logs.facts import Facts, Setting
from reperf.measuring import results_table, statistics
from reperf.measuring.found_logs import RunResult
from reperf.measuring.measure import Fingerprint, Measurement
from reperf.measuring.results_table import HEADER, csv_lines, table
from reperf.text import from_field, printable


def measured(log: str, throughput: float = 10.0, **said: object) -> Measurement:
    usual = {"format": "mlperf", "unit": "samples/s", "global_batch": 4096, "widest": (20, 4800)}
    usual |= {"first": 20, "last": 120, "first_printed": 20, "last_printed": 4800, "interval": 20}
    return Measurement(log, status="ok", throughput=throughput, **usual | said)


def refused(log: str, reason: str, code: str = "hole", **said: object) -> Measurement:
    return Measurement(log, **{"format": None} | said, status="refused", reason=reason, code=code)


def shown(found: Iterable[Measurement | RunResult], **how: object) -> list[str]:
    """The lines of the table of some runs."""
    runs = [one if isinstance(one, RunResult) else RunResult(one, Facts()) for one in found]
    return list(table(runs, **how))


def squeezed(lines: Iterable[str]) -> list[str]:
    return [" ".join(line.split()) for line in lines]


texts = st.text(max_size=30)
counts = st.none() | st.integers(0, 10**6)
measurements = st.builds(
    refused,
    log=texts,
    reason=texts.filter(bool),
    code=st.sampled_from([*SENTENCES]),
    format=st.none() | texts,
    unit=st.none() | texts,
    global_batch=counts,
    run=st.integers(1, 3),
    first_printed=st.just(0),
    last_printed=counts,
    interval=st.none() | st.integers(1, 100),
    widest=st.none() | st.tuples(st.integers(0, 100), st.integers(101, 200)),
    sources=st.dictionaries(texts, texts, max_size=2),
) | st.builds(measured, log=texts, format=texts, throughput=st.floats(1e-9, 1e15), unit=texts)


@given(st.lists(measurements, max_size=8), st.booleans())
@settings(max_examples=60)
def test_every_run_is_counted_and_on_one_printable_line_and_a_row_gives_it_back(found, files):
    lines = shown(found, files=files)
    assert lines == [printable(line) for line in lines]
    ok = sum(one.status == "ok" for one in found)
    assert [line for line in lines[-4:] if line.startswith(f"{ok} measured, {len(found) - ok} ref")]
    headings = [re.match(r"(\d+) (?:measured$|refused \[)", line) for line in lines]
    assert sum(int(match[1]) for match in headings if match) >= len(found)
    for row, one in zip(csv.DictReader(csv_lines(found)), found, strict=True):
        assert from_field(row["log"]) == one.log
        assert from_field(row["reason"]) == one.reason
        assert (float(row["throughput"]) if row["throughput"] else None) == one.throughput
        assert row["run"] == str(one.run)


def test_what_was_measured_comes_first_and_then_the_most_frequent_refusal_with_its_first_log():
    found = [refused(f"a/{n}.log", f"by {n}", "too-short") for n in range(3)]
    found += [refused(f"a/{n}.log", "no line", "unknown-format") for n in range(3, 8)]
    found += [measured(f"a/{n}.log", warnings=("widest: so wide",)) for n in (8, 9)]
    lines = shown(found)
    assert [line for line in lines if re.match(r"\d+ [mr]", line)] == [
        "2 measured",
        "2 measured with a warning [widest]: so wide",
        "5 refused [unknown-format]: no line",
        f"3 refused [too-short]: {SENTENCES['too-short']}",
        "2 measured, 8 refused: 5 unknown-format, 3 too-short",
    ]
    text = "\n".join(lines)
    assert f"{SENTENCES['too-short']}\n    0.log\n        by 0\n    and 2 more\n" in text
    assert "[widest]: so wide\n    8.log (" in text
    assert lines[-1] == "--files shows every log that was refused"
    assert "docs/refusals.md says what each refusal means" in lines
    every = shown(found, files=True)
    assert lines[-1] not in every
    assert all(f"    {n}.log\n        by {n}\n" in "\n".join(every) for n in range(3))


def test_lines_fit_the_terminal_and_a_path_is_there_whole():
    logs = [f"/x/{'some-folder/' * 9}result_{n}.txt" for n in range(3)] + ["/y/short.txt"]
    found = [*map(measured, logs)]
    found += [refused(logs[n], f"{'very ' * 40}short: by {n}") for n in (0, 1)]
    for width in (100, 120, 170):
        lines = shown(found, width=width)
        assert max(map(len, lines)) <= width
        assert logs[0] in "".join("".join(line.split()[-1:]) for line in lines)
    assert " ".join(HEADER) in squeezed(lines)
    assert any(logs[0] in line for line in shown(found))


def test_each_folder_has_a_median_and_a_spread():
    found = [measured(f"/x/bert/{n}.txt", 10.0 + n / 2) for n in range(4)]
    found += [measured("/x/gnn/1.txt", 3.0), measured("/x/gnn/2.txt", 4.0)]
    alone = [measured("/x/ssd/1.txt", 7.0), refused("/x/ssd/2.txt", "none")]
    lines = squeezed(shown([*found, *alone]))
    at = lines.index("n median min..max unit batch folder")
    assert lines[at + 1 : at + 5] == [
        "4 10.75 10.00..11.50 samples/s 4096 bert",
        "2 3.50 3.00..4.00 samples/s 4096 gnn (scattered)",
        "1 7.00 7.00..7.00 samples/s 4096 ssd",
        "",
    ]
    assert not [line for line in shown(alone) if "median" in line]
    assert results_table._SCATTERED == statistics.WIDE  # as those of a report


def test_configurations_in_one_folder_have_medians_of_their_own():
    """Each is named by no more facts than tell it apart."""
    hidden, image_size, unpadded = map(Setting, ("hidden", "image_size", "unpadded"))
    bert = {"workload": "bert-base", hidden: 768, "precision": "amp"}
    resnet = {"workload": "resnet50", image_size: 224, "precision": "amp", unpadded: False}
    kinds = [bert | {unpadded: False}, bert | {unpadded: True}, resnet]
    told = (kinds[n // 3] | {"start_loss": n} for n in range(9))
    found = [
        RunResult(measured(f"2n8g/x_{n}.log", 10.0 + n), Facts().add("the path", facts.items()))
        for n, facts in enumerate(told)
    ]
    assert [line for line in squeezed(shown(found)) if " .: " in line] == [
        "3 11.00 10.00..12.00 samples/s 4096 .: workload bert-base, unpadded off",
        "3 14.00 13.00..15.00 samples/s 4096 .: workload bert-base, unpadded on",
        "3 17.00 16.00..18.00 samples/s 4096 .: workload resnet50",
    ]


def test_a_log_counts_once_in_the_median():
    runs = [measured(f"x/{n}.log", 10.0 + n % 2) for n in range(6)]
    found = [RunResult(run, Facts(), fingerprint=Fingerprint(run.log, None)) for run in runs]
    copies = "    left out of the medians, as copies in the same folder: {}"
    assert copies.format(6) in shown([*found, *found])
    same = [replace(one, digest="ab"[n % 2]) for n, one in enumerate(found)]
    assert copies.format(4) in shown(same)
