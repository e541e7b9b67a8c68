"""What the sentences of a report say: never more than the rank test and the machine allow."""

from collections import namedtuple

import pytest
from reperf.drawing.panels import Entry, finding, panels
from reperf.tables import SUMMARY

NAN = float("nan")
EMPTY = {name: "" if kind is str else NAN for name, kind in SUMMARY.items()}
Row = namedtuple("Row", EMPTY)


def entry(series: str, runs: list[float], devices: int = 8, nodes: int = 1, **changes) -> Entry:
    """A cell of some runs, by default on eight GPUs of an idle machine."""
    usual = {
        "topology": f"{nodes}n{devices}g",
        "num_nodes": nodes,
        "devices_per_node": devices,
        "device": "cuda",
        "status": "ok" if runs else "failed",
        "unit": "images/s",
        "throughput_median": sorted(runs)[len(runs) // 2] if runs else NAN,
        "load": 0.0,
        "baseline": "1n1g",
    }
    return Entry(Row(**EMPTY | usual | changes), series, tuple(runs))


def seven(median: float) -> list[float]:
    return [median + k for k in range(-3, 4)]


def said(*cells: Entry) -> str:
    return finding(panels(cells))


def both(ours: float, theirs: float, devices: int = 8, **changes) -> list[Entry]:
    return [
        entry("A", seven(ours), devices, **changes),
        entry("B", seven(theirs), devices, **changes),
    ]


@pytest.mark.parametrize(
    ("cells", "sentence"),
    [
        (both(1030, 1000), "A is fastest on 8 GPUs: B is 2.9 % below it (2.6 to 3.2 %)."),
        (both(1700, 1000), "A is fastest on 8 GPUs: B is 41.2 % below it (41.0 to 41.3 %)."),
        (
            both(1030, 1000) + both(2100, 2000, nodes=2),
            "A is fastest on every size; on 16 GPUs B is 4.8 % below it (4.6 to 4.9 %).",
        ),
        (
            both(100, 50, devices=1) + both(400, 200, devices=4) + both(1000, 1030),
            "A is fastest on 1 and 4 GPUs; B is fastest on 8 GPUs: A is 2.9 % below it "
            "(2.6 to 3.2 %).",
        ),
        (
            both(1000, 1000.5),
            "No clear winner on 8 GPUs: A cannot be told from B (\N{MINUS SIGN}0.3 to +0.3 %).",
        ),
        (
            [*both(1000, 1000.5), entry("C", seven(1000.2))],
            "No clear winner on 8 GPUs: B cannot be told from 2 others.",
        ),
        (
            both(100, 50, devices=1) + both(1000, 1000.5),
            "A is fastest on 1 GPU; no clear winner on 8 GPUs: A cannot be told from B "
            "(\N{MINUS SIGN}0.3 to +0.3 %).",
        ),
        (
            [entry("A", [103, 104, 105]), entry("B", [100, 101, 102])],
            "No clear winner yet on 8 GPUs: B is 2.9 % below A; their 3 repeats do not overlap, "
            "and 4 repeats would test it.",
        ),
        (
            [entry("A", [100, 104, 105]), entry("B", [99, 101, 102])],
            "No clear winner yet on 8 GPUs: B is 2.9 % below A; their 3 repeats overlap, "
            "and 4 repeats would test it.",
        ),
        (
            [entry("A", [150]), entry("B", [100])],
            "No clear winner yet on 8 GPUs: B is 33.3 % below A in one run each; "
            "4 repeats would test it.",
        ),
        (both(1030, 1000, load=0.26), "No finding: other work took up to 26 % of the machine."),
        (
            both(100, 50, devices=1) + both(1030, 1000, load=0.9),
            "A is fastest on 1 GPU; other work spoils the numbers on 8 GPUs.",
        ),
        (
            [*both(100, 50, devices=1), entry("A", seven(1000)), entry("B", [])],
            "A is fastest on 1 GPU: B is 50.0 % below it (47.5 to 52.4 %).",
        ),
        (
            [entry("A", [1.0, 2.0, 4.0, 8.0]), entry("B", [1.1, 2.1, 4.1, 8.1])],
            "No clear winner on 8 GPUs: A cannot be told from B (\N{MINUS SIGN}87.7 to +627.3 %).",
        ),
        ([entry("A", [])], "Nothing was measured."),
        ([entry("A", seven(1234.5)), entry("B", [])], "A: 1,234 images/s on 8 GPUs."),
        (
            [entry("A", seven(1234), speedup=7.5)],
            "A: 1,234 images/s on 8 GPUs, 7.5 times as fast as on 1 GPU.",
        ),
        (
            [entry("A", seven(1234), speedup=7.5, speedup_low=1.0, speedup_high=9.0)],
            "A: 1,234 images/s on 8 GPUs; its repeats scatter too much for a speedup.",
        ),
        (
            [entry("A", seven(9), load=0.5)],
            "No finding: other work took up to 50 % of the machine.",
        ),
    ],
)
def test_a_sentence_is_as_strong_as_its_numbers(cells, sentence):
    assert said(*cells) == sentence


def test_a_fastest_cell_is_named_only_if_every_other_is_told_from_it():
    [panel] = panels([*both(1000, 1000.5), entry("C", seven(900)), entry("D", [])])
    assert [(one.cell.series, one.verdict) for one in panel.ranked] == [
        ("B", "leads"),
        ("A", "cannot be told"),
        ("C", "slower"),
    ]
    assert [cell.series for cell in panel.missing] == ["D"]
    [spoilt] = panels(both(1030, 1000, load=0.3))
    assert [one.verdict for one in spoilt.ranked] == ["leads", "cannot be told"]


def test_of_a_unit_that_counts_time_the_least_is_the_fastest():
    [panel] = panels(both(100, 50, unit="ms/iteration"))
    assert [one.cell.series for one in panel.ranked] == ["B", "A"]


def test_devices_that_share_cpus_have_a_panel_of_their_own():
    cells = [entry("A", [1.0]), entry("A", [1.0], shared_cpus=2)]
    assert [panel.title for panel in panels(cells)] == ["8 GPUs", "8 devices share 2 CPUs"]
