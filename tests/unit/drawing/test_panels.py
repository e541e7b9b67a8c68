"""What the sentences of a report say: never more than the rank test and the machine allow."""

from collections import namedtuple

import pytest
from reperf.drawing.panels import Entry, finding, panels
from reperf.tables import SUMMARY

NAN = float("nan")
EMPTY = {name: "" if kind is str else NAN for name, kind in SUMMARY.items()}
Row = namedtuple("Row", EMPTY)
MINUS = "\N{MINUS SIGN}"


def entry(series: str, runs: list[float], devices: int = 8, nodes: int = 1, **changes) -> Entry:
    """A cell of some runs, by default on eight GPUs of an idle machine."""
    usual = {"topology": f"{nodes}n{devices}g", "num_nodes": nodes, "devices_per_node": devices}
    usual |= {"device": "cuda", "status": "ok" if runs else "failed", "unit": "images/s"}
    usual |= {"throughput_median": sorted(runs)[len(runs) // 2] if runs else NAN}
    usual |= {"load": 0.0, "baseline": "1n1g"}
    return Entry(Row(**EMPTY | usual | changes), series, tuple(runs))


def seven(median: float) -> list[float]:
    return [median + k for k in range(-3, 4)]


def both(ours: float, theirs: float, devices: int = 8, **changes) -> list[Entry]:
    pairs = ("A", ours), ("B", theirs)
    return [entry(series, seven(rate), devices, **changes) for series, rate in pairs]


def few(ours: list[float], theirs: list[float]) -> list[Entry]:
    return [entry("A", ours), entry("B", theirs)]


ONE_GPU = both(100, 50, devices=1)
EQUAL = both(1000, 1000.5)
BELOW = "No clear winner yet on 8 GPUs: B is {} below A"

SENTENCES = {
    "A is fastest on 8 GPUs: B is 2.9 % below it (2.6 to 3.2 %).": both(1030, 1000),
    "A is fastest on 8 GPUs: B is 41.2 % below it (41.0 to 41.3 %).": both(1700, 1000),
    "A is fastest on every size; on 16 GPUs B is 4.8 % below it (4.6 to 4.9 %).": (
        both(1030, 1000) + both(2100, 2000, nodes=2)
    ),
    "A is fastest on 1 and 4 GPUs; B is fastest on 8 GPUs: A is 2.9 % below it (2.6 to 3.2 %).": (
        ONE_GPU + both(400, 200, devices=4) + both(1000, 1030)
    ),
    "A is fastest on 1 and 8 GPUs; B is fastest on 8 GPUs on 2 nodes: A is 2.9 % below it "
    "(2.6 to 3.2 %).": ONE_GPU + both(1030, 1000) + both(1000, 1030, devices=4, nodes=2),
    f"No clear winner on 8 GPUs: A cannot be told from B ({MINUS}0.3 to +0.3 %).": EQUAL,
    "No clear winner on 8 GPUs: B cannot be told from 2 others.": (
        [*EQUAL, entry("C", seven(1000.2))]
    ),
    "A is fastest on 1 GPU; no clear winner on 8 GPUs: A cannot be told from B "
    f"({MINUS}0.3 to +0.3 %).": ONE_GPU + EQUAL,
    f"{BELOW.format('2.9 %')}; their 3 repeats do not overlap, and 4 repeats would test it.": (
        few([103, 104, 105], [100, 101, 102])
    ),
    f"{BELOW.format('2.9 %')}; their 3 repeats overlap, and 4 repeats would test it.": (
        few([100, 104, 105], [99, 101, 102])
    ),
    f"{BELOW.format('3.4 %')}; their repeats do not overlap, and 5 repeats would test it.": (
        [*few([103, 104, 105], [100, 101]), entry("C", [50.0])]
    ),
    f"{BELOW.format('33.3 %')} in one run each; 4 repeats would test it.": few([150], [100]),
    "No finding: other work took up to 26 % of the machine.": both(1030, 1000, load=0.26),
    "A is fastest on 1 GPU; other work spoils the numbers on 8 GPUs.": (
        ONE_GPU + both(1030, 1000, load=0.9)
    ),
    "A is fastest on 1 GPU: B is 50.0 % below it (47.5 to 52.4 %).": (
        ONE_GPU + few(seven(1000), [])
    ),
    f"No clear winner on 8 GPUs: A cannot be told from B ({MINUS}87.7 to +627.3 %).": (
        few([1.0, 2.0, 4.0, 8.0], [1.1, 2.1, 4.1, 8.1])
    ),
    "Nothing was measured.": [entry("A", [])],
    "A: 1,234 images/s on 8 GPUs.": few(seven(1234.5), []),
    "A: 1,234 images/s on 8 GPUs, 7.5 times as fast as on 1 GPU.": (
        [entry("A", seven(1234), speedup=7.5)]
    ),
    "A: 1,234 images/s on 8 GPUs; its repeats scatter too much for a speedup.": (
        [entry("A", seven(1234), speedup=7.5, speedup_low=1.0, speedup_high=9.0)]
    ),
    "No finding: other work took up to 50 % of the machine.": [entry("A", seven(9), load=0.5)],
}


@pytest.mark.parametrize("sentence", SENTENCES)
def test_a_sentence_is_as_strong_as_its_numbers(sentence):
    assert finding(panels(SENTENCES[sentence])) == sentence


def test_a_fastest_cell_is_named_only_if_every_other_is_told_from_it():
    [panel] = panels([*EQUAL, entry("C", seven(900)), entry("D", [])])
    verdicts = [(one.cell.series, one.verdict) for one in panel.ranked]
    assert verdicts == [("B", "leads"), ("A", "cannot be told"), ("C", "slower")]
    assert [cell.series for cell in panel.missing] == ["D"]
    [spoilt] = panels(both(1030, 1000, load=0.3))
    assert [one.verdict for one in spoilt.ranked] == ["leads", "cannot be told"]


def test_times_are_ranked_upwards_and_shared_cpus_have_a_panel_of_their_own():
    [panel] = panels(both(100, 50, unit="ms/iteration"))
    assert [one.cell.series for one in panel.ranked] == ["B", "A"]
    shared = panels([entry("A", [1.0]), entry("A", [1.0], shared_cpus=2)])
    assert [panel.title for panel in shared] == ["8 GPUs", "8 devices share 2 CPUs"]
