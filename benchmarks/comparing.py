"""How often `reperf compare` is right, on simulated repeats; and a comparison of published ones.

    python benchmarks/comparing.py [--matrices 1000] [--published FOLDER]

Repeats are normal around their cell's throughput, with a coefficient of variation (CV) of 0.3 or of
3 %, or with that of a cell of data/published/repeats.csv, drawn anew for each cell. Resampled ones
are drawn from the repeats of such a cell themselves, so that they scatter as these do.

With --published, no simulation: two lists of the same cells that OneFlow printed a week apart, in
August 2020, are written to FOLDER/0822 and FOLDER/0829 as tables of measurements.
"""

import argparse
from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
from reperf.layout import PUBLISHED
from reperf.measuring.comparison import judge
from reperf.tables import MEASUREMENTS, write_table

REPEATS = PUBLISHED / "repeats.csv"
LISTS = "OneFlow/LanguageModeling/BERT/reports/bert_base_fp32_report_0822.md"
CHANCE = np.random.default_rng(43)

Spread = float | np.ndarray
"""A CV, or deviations from the mean to draw from, as shares of it."""
Drawn = Callable[[], Spread]
"""What gives the spread of a cell."""


@cache
def published_deviations() -> list[np.ndarray]:
    """How the repeats of each published cell that has five or more deviate from their mean."""
    table = pd.read_csv(REPEATS, keep_default_na=False)
    cell = [column for column in table.columns if column not in ("repeat", "throughput")]
    groups = [values.to_numpy() for _, values in table.groupby(cell)["throughput"]]
    known = [values / values.mean() - 1 for values in groups if len(values) >= 5]
    return [values * np.sqrt(len(values) / (len(values) - 1)) for values in known if values.any()]


def repeats(spread: Spread, change: float = 0.0, n: int = 7) -> list[float]:
    """The throughputs of a cell, whose own is 1,000 times 1 + change."""
    if isinstance(spread, float):
        noise = spread * CHANCE.standard_normal(n)
    else:
        noise = CHANCE.choice(spread, n)
    return list(1000 * (1 + change) * (1 + noise))


def verdicts(  # noqa: PLR0917
    matrices: int, cells: int, cv: Drawn, change: float, threshold: float, n: int, apart: float = 0
) -> tuple[Counter[str], Counter[str]]:
    """Count the verdicts about the first cell, which has changed, and about all others.

    Args:
        matrices: how many comparisons.
        cells: of each.
        cv: gives the spread of each cell.
        change: of the first cell's throughput.
        threshold: as reperf compare has it.
        n: repeats on either side.
        apart: the standard deviation of what two campaigns differ by, for each cell.

    Returns:
        Of the first cell, each verdict; of the others, how many matrices have it at least once, and
        as `alarm`, how many call a cell slower or faster that has not changed.
    """
    first: Counter[str] = Counter()
    others: Counter[str] = Counter()
    for _ in range(matrices):
        pairs = []
        for cell in range(cells):
            spread, moved = cv(), apart * CHANCE.standard_normal()
            changed = (1 + (change if cell == 0 else 0)) * (1 + moved) - 1
            pairs.append((repeats(spread, n=n), repeats(spread, changed, n)))
        found = [verdict.judgement for verdict in judge(pairs, threshold)]
        first[found[0]] += 1
        alarms = {"slower", "faster"} & set(found[1:] if change else found)
        others.update(set(found[1:]))
        others["alarm"] += bool(alarms)
    return first, others


def resampled() -> np.ndarray:
    known = published_deviations()
    return known[CHANCE.integers(len(known))]


def of_published() -> float:
    return float(np.sqrt((resampled() ** 2).mean()))


def steady() -> float:
    return 0.003


def noisy() -> float:
    return 0.03


EQUAL = (40, steady, "0.3 %", 0.0, 0.0, 7, 0)
"""Ten times as many comparisons, so that its false alarms are counted more exactly."""
SIMULATED = [
    # cells, CV, what it is called, change, threshold, repeats, between campaigns
    (1, steady, "0.3 %", -0.01, 0.0, 7, 0),
    (1, steady, "0.3 %", -0.01, 0.01, 7, 0),
    (1, steady, "0.3 %", -0.02, 0.01, 7, 0),
    (40, steady, "0.3 %", -0.01, 0.0, 7, 0),
    (40, steady, "0.3 %", -0.01, 0.0, 5, 0),
    (40, steady, "0.3 %", -0.05, 0.01, 4, 0),
    (40, steady, "0.3 %", -0.02, 0.01, 7, 0),
    (40, steady, "0.3 %", -0.02, 0.01, 10, 0),
    (40, noisy, "3 %", -0.01, 0.01, 7, 0),
    (40, of_published, "published", -0.02, 0.01, 7, 0),
    (40, of_published, "published", 0.0, 0.0, 7, 0),
    (40, of_published, "published", 0.0, 0.01, 7, 0),
    (40, resampled, "resampled", -0.02, 0.01, 7, 0),
    (40, resampled, "resampled", 0.0, 0.0, 7, 0),
    (40, resampled, "resampled", 0.0, 0.0, 4, 0),
    (40, steady, "0.3 %", 0.0, 0.0, 7, 0.003),
    (40, steady, "0.3 %", 0.0, 0.01, 7, 0.003),
]


def simulate(matrices: int) -> None:
    print("cells  CV         change  threshold  n   apart  | the changed cell, % | matrices with")
    print("                                                                      a false alarm, %")
    for row in (*SIMULATED, EQUAL):
        cells, cv, name, change, threshold, n, apart = row
        number = matrices * (10 if row is EQUAL else 1)
        first, others = verdicts(number, cells, cv, change, threshold, n, apart)
        shown = ", ".join(
            f"{judgement} {100 * times / number:.1f}" for judgement, times in first.most_common()
        )
        alarms = 100 * others["alarm"] / number
        print(
            f"{cells:5}  {name:9}  {100 * change:+.0f} %    {100 * threshold:.0f} %"
            f"        {n:<3} {100 * apart:.1f} %  | {shown} | {alarms:.1f}",
            flush=True,
        )


def write_published(folder: Path) -> None:
    """Write the two lists as tables of measurements."""
    table = pd.read_csv(REPEATS, keep_default_na=False)
    table = table[table["source_doc"] == LISTS]
    for day, rows in table.groupby("list"):
        written = [
            dict.fromkeys(MEASUREMENTS)
            | {
                "suite": "bert-base-fp32",
                "system": "oneflow",
                "workload": "bert-base",
                "precision": "fp32",
                "batch_size_per_device": row.batch_size_per_device,
                "topology": f"{row.num_nodes}n{row.devices_per_node}g",
                "num_nodes": row.num_nodes,
                "devices_per_node": row.devices_per_node,
                "repeat": row.repeat,
                "status": "ok",
                "throughput": row.throughput,
                "unit": "sentences/s",
                "method": "published",
            }
            for row in rows.itertuples()
        ]
        path = folder / str(day).split()[0] / "measurements.csv"
        path.parent.mkdir(parents=True, exist_ok=True)
        write_table(path, written, MEASUREMENTS)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--matrices", type=int, default=1000, help="comparisons of each kind")
    parser.add_argument("--published", type=Path, metavar="FOLDER", help="write published repeats")
    options = parser.parse_args()
    if options.published:
        write_published(options.published)
    else:
        simulate(options.matrices)


if __name__ == "__main__":
    main()
