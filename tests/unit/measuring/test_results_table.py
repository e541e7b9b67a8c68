"""The table of verdicts and the rows for a spreadsheet, whatever logs and reasons say."""

import csv
import random
import re
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


def measured(log: str, throughput: float = 10.0) -> Measurement:
    window = {"first": 20, "last": 120, "first_printed": 20, "last_printed": 4800, "interval": 20}
    said = {"unit": "samples/s", "global_batch": 4096, "widest": (20, 4800), **window}
    return Measurement(log, "mlperf", "ok", throughput=throughput, **said)


def refused(log: str, reason: str, code: str = "hole") -> Measurement:
    return Measurement(log, None, "refused", reason, code=code)


def results(found: list[Measurement]) -> list[RunResult]:
    return [RunResult(one, Facts()) for one in found]


texts = st.text(max_size=30)
counts = st.none() | st.integers(0, 10**6)
measurements = st.builds(
    Measurement,
    log=texts,
    format=st.none() | texts,
    status=st.just("refused"),
    reason=texts.filter(bool),
    code=st.sampled_from([*SENTENCES]),
    unit=st.none() | texts,
    first=st.just(20),
    last=st.just(120),
    global_batch=counts,
    run=st.integers(1, 3),
    first_printed=st.just(0),
    last_printed=counts,
    interval=st.none() | st.integers(1, 100),
    widest=st.none() | st.tuples(st.integers(0, 100), st.integers(101, 200)),
    sources=st.dictionaries(texts, texts, max_size=2),
) | st.builds(
    Measurement,
    log=texts,
    format=texts,
    status=st.just("ok"),
    throughput=st.floats(1e-9, 1e15),
    unit=texts,
)


@given(st.lists(measurements, max_size=8), st.booleans())
@settings(max_examples=60)
def test_every_run_is_counted_and_on_one_printable_line_and_a_row_gives_it_back(found, files):
    lines = list(table(results(found), files=files))
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


def test_the_most_frequent_refusal_comes_first_after_what_was_measured():
    found = [refused(f"{n}.log", "by 1", "too-short") for n in range(3)]
    found += [refused(f"{n}.log", "no line", "unknown-format") for n in range(3, 8)]
    found.append(Measurement("9.log", "mllog", "ok", "", 10.0, "images/s"))
    random.Random(1).shuffle(found)
    lines = list(table(results(found)))
    assert [line for line in lines if re.match(r"\d", line)] == [
        "1 measured",
        "5 refused [unknown-format]: no line",
        "3 refused [too-short]: by 1",
        "1 measured, 8 refused: 5 unknown-format, 3 too-short",
    ]
    assert lines[-1] == "--files shows every log that was refused"
    assert "docs/refusals.md says what each refusal means" in lines
    assert lines[-1] not in table(results(found), files=True)


def test_the_first_of_a_kind_is_shown_and_the_others_on_demand():
    found = [refused(f"a/{n}.log", f"it ends at {n}", "too-short") for n in range(9)]
    shown = "\n".join(table(results(found)))
    assert f"9 refused [too-short]: {SENTENCES['too-short']}\n" in shown
    assert "    0.log\n        it ends at 0\n    and 8 more\n" in shown
    assert "1.log" not in shown
    shown = "\n".join(table(results(found), files=True))
    assert all(f"{n}.log\n        it ends at {n}\n" in shown for n in range(9))
    assert "more" not in shown


def test_a_warning_is_shown_with_the_runs_that_it_is_of():
    found = [replace(measured(f"a/{n}.log"), warnings=("widest: so wide",)) for n in range(2)]
    shown = "\n".join(table(results(found)))
    assert "2 measured with a warning [widest]: so wide\n    0.log (" in shown


def test_lines_fit_the_terminal_and_a_path_is_there_whole():
    logs = [f"/x/{'some-folder/' * 9}result_{n}.txt" for n in range(3)] + ["/y/short.txt"]
    found = [*map(measured, logs)]
    found += [refused(logs[n], f"{'very ' * 40}short: by {n}") for n in (0, 1)]
    for width in (100, 120, 170):
        lines = list(table(results(found), width=width))
        assert max(map(len, lines)) <= width
        assert logs[0] in "".join("".join(line.split()[-1:]) for line in lines)
    assert any(line.split() == list(HEADER) for line in table(results(found), width=170))
    assert any(logs[0] in line for line in table(results(found)))


def test_each_folder_has_a_median_and_a_spread():
    found = [measured(f"/x/bert/{n}.txt", 10.0 + n / 2) for n in range(4)]
    found += [measured("/x/gnn/1.txt", 3.0), measured("/x/gnn/2.txt", 4.0)]
    found += [measured("/x/ssd/1.txt", 7.0), refused("/x/ssd/2.txt", "none")]
    lines = [" ".join(line.split()) for line in table(results(found))]
    at = lines.index("n median min..max unit batch folder")
    assert lines[at + 1 : at + 5] == [
        "4 10.75 10.00..11.50 samples/s 4096 bert",
        "2 3.50 3.00..4.00 samples/s 4096 gnn (scattered)",
        "1 7.00 7.00..7.00 samples/s 4096 ssd",
        "",
    ]
    alone = found[6:]
    assert not [line for line in table(results(alone)) if "median" in line]


def test_configurations_in_one_folder_have_medians_of_their_own():
    """Each is named by no more facts than tell it apart."""
    hidden, image_size, unpadded = map(Setting, ("hidden", "image_size", "unpadded"))

    def answer(n: int, facts: dict) -> RunResult:
        one = measured(f"2n8g/x_{n}.log", 10.0 + n)
        return RunResult(one, Facts().add("the path", {**facts, "start_loss": n}.items()))

    kinds = [
        {"workload": "bert-base", hidden: 768, "precision": "amp", unpadded: False},
        {"workload": "bert-base", hidden: 768, "precision": "amp", unpadded: True},
        {"workload": "resnet50", image_size: 224, "precision": "amp", unpadded: False},
    ]
    found = [answer(n, kinds[n // 3]) for n in range(9)]
    rows = [" ".join(line.split()) for line in table(found) if "  .: " in line]
    assert rows == [
        "3 11.00 10.00..12.00 samples/s 4096 .: workload bert-base, unpadded off",
        "3 14.00 13.00..15.00 samples/s 4096 .: workload bert-base, unpadded on",
        "3 17.00 16.00..18.00 samples/s 4096 .: workload resnet50",
    ]


def test_a_log_counts_once_in_the_median():
    found = [
        replace(one, fingerprint=Fingerprint(f"{n}", None))
        for n, one in enumerate(results([measured(f"x/{n}.log", 10.0 + n % 2) for n in range(6)]))
    ]
    copies = "    left out of the medians, as copies in the same folder: {}"
    assert copies.format(6) in table([*found, *found])
    found = [replace(one, digest="abcdef"[n % 2]) for n, one in enumerate(found)]
    assert copies.format(4) in table(found)


def test_runs_of_a_folder_are_scattered_as_those_of_a_report_are():
    assert results_table._SCATTERED == statistics.WIDE
