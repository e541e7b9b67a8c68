"""Where the published numbers contradict each other, found by computation alone.

A printed number stands for every number that rounds to it. Two are called contradictory only where
no unrounded numbers could have led to both.

python data/published/find_discrepancies.py writes discrepancies.csv beside it, which the report
reads: call it after a change of the facts.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from decimal import Decimal
from itertools import combinations
from statistics import median
from typing import Any

import pandas as pd
from reperf.number_format import count
from reperf.published import (
    DISCREPANCIES,
    NUMBERS,
    REPEATS,
    Discrepancy,
    load_definitions,
    read_facts,
)

SERIES = ["framework", "words", "framework_version", "model", "precision", "batch_size_per_device"]
LABEL = ["framework_version", "precision", "batch_size_per_device"]
LISTED = [
    *("source_doc", "framework", "variant", "model", "precision"),
    *("batch_size_per_device", "topology"),
]

Row = Any
"""A row of facts, as pandas' itertuples gives it."""


def main() -> None:
    """Write discrepancies.csv."""
    rows_of(find_discrepancies(read_facts(NUMBERS), read_facts(REPEATS))).to_csv(
        DISCREPANCIES, index=False, lineterminator="\n"
    )


def rows_of(discrepancies: list[Discrepancy]) -> pd.DataFrame:
    """Contradictions as the file holds them: a row for each value."""
    return pd.DataFrame(
        (number, item.kind, item.where, item.what, value, source)
        for number, item in enumerate(discrepancies, start=1)
        for value, source in zip(item.values, item.sources, strict=True)
    ).set_axis(["number", "kind", "where", "what", "value", "source"], axis=1)


def find_discrepancies(numbers: pd.DataFrame, repeats: pd.DataFrame) -> list[Discrepancy]:
    """The contradictions among facts, as `read_facts` gives them: by kind, in the facts' order."""
    numbers = numbers.assign(
        words=_words(numbers),
        slack=_half_units(numbers, "value", ["source_doc", "metric"]),
        speedup_slack=_half_units(numbers, "speedup_published", ["source_doc"]),
    )
    repeats = repeats.assign(
        words=_words(repeats), slack=_half_units(repeats, "throughput", ["source_doc", "list"])
    )
    printed = [*numbers[numbers["value"].notna()].itertuples()]
    throughputs = [row for row in printed if row.metric == "throughput"]
    return [
        *_speedups(throughputs),
        *_values(printed),
        *_medians(throughputs, repeats.itertuples()),
        *_labels(throughputs),
    ]


def _speedups(throughputs: list[Row]) -> Iterator[Discrepancy]:
    """Speedups that the printed throughputs cannot lead to.

    A document's own throughput of one device is the base; if it prints none, the speedup may follow
    from any other document's.
    """
    one_device = _grouped((row for row in throughputs if row.topology == "1n1g"), SERIES)
    for row in throughputs:
        if row.speedup_published is None:
            continue
        known = one_device.get(_key(row, SERIES), [])
        bases = [base for base in known if base.source_doc == row.source_doc] or known
        if bases and not any(_follows(row, base) for base in bases):
            base = bases[0]
            borrowed = f" of {base.source_doc}" if base.source_doc != row.source_doc else ""
            yield Discrepancy(
                "speedup",
                _cell(row),
                "the speedup does not follow from the throughputs",
                (str(row.speedup_published), f"{row.value / base.value:.4f}"),
                (row.source_doc, f"{row.value} / {base.value}{borrowed}"),
            )


def _follows(row: Row, base: Row) -> bool:
    low = (row.value - row.slack) / (base.value + base.slack) - row.speedup_slack
    high = (row.value + row.slack) / (base.value - base.slack) + row.speedup_slack
    return low <= row.speedup_published <= high


def _values(printed: list[Row]) -> Iterator[Discrepancy]:
    """Cells for which two documents print different numbers."""
    for rows in _grouped(printed, [*SERIES, "topology", "metric"]).values():
        if any(_differ(*pair) for pair in combinations(rows, 2)):
            documents: dict[Decimal, list[str]] = defaultdict(list)
            for row in rows:
                documents[row.value].append(row.source_doc)
            yield Discrepancy(
                "value",
                _cell(rows[0]),
                f"the documents differ on the {rows[0].metric.replace('_', ' ')}",
                tuple(map(str, documents)),
                tuple(map(", ".join, documents.values())),
            )


def _differ(first: Row, second: Row) -> bool:
    """Whether two documents' numbers cannot be one number, rounded."""
    apart = abs(first.value - second.value)
    return first.source_doc != second.source_doc and 0 < apart >= first.slack + second.slack


def _medians(throughputs: list[Row], repeats: Iterable[Row]) -> Iterator[Discrepancy]:
    """Lists of repeats whose median is not the one that their document prints for the cell."""
    cells = {_key(row, LISTED): row for row in throughputs}
    for key, rows in _grouped(repeats, [*LISTED, "list"]).items():
        middle = median(row.throughput for row in rows)
        cell = cells.get(key[:-1])
        slack = rows[0].slack + (cell.slack if cell else rows[0].slack)
        printed = {rows[0].median_published, cell.value if cell else None} - {None}
        for value in sorted(printed):
            # The middle repeat of an odd number is rounded as the median is; the mean of the middle
            # two can be a whole unit off.
            apart = abs(value - middle)
            if apart > slack or (apart == slack and len(rows) % 2):
                counted = count(len(rows), "repeat")
                named = f" of {rows[0].list}" if rows[0].list else ""
                yield Discrepancy(
                    "median",
                    _cell(cell or rows[0]),
                    "the median is not that of the repeats",
                    (str(value), str(middle)),
                    (rows[0].source_doc, counted + named),
                )


def _labels(throughputs: list[Row]) -> Iterator[Discrepancy]:
    """Series that agree on every topology they share, two or more, but have different labels."""
    for (framework, model), rows in _grouped(throughputs, ["framework", "model"]).items():
        series = [
            (part[0], {row.topology: row.value for row in part})
            for part in _grouped(rows, ["source_doc", *SERIES]).values()
        ]
        # A pair of labels -> the documents that print each of the two, in order.
        found: dict[tuple[str, str], tuple[dict, dict]] = {}
        for (one, values), (other, others) in combinations(series, 2):
            shared = values.keys() & others.keys()
            equal = len(shared) > 1 and all(values[place] == others[place] for place in shared)
            if equal and _labels_differ(one, other):
                first, second = sorted((one, other), key=_label)
                documents = found.setdefault((_label(first), _label(second)), ({}, {}))
                documents[0][first.source_doc] = documents[1][second.source_doc] = None
        for labels, documents in found.items():
            yield Discrepancy(
                "label",
                f"{framework}, {model}",
                "the same numbers under two labels",
                labels,
                tuple(map(", ".join, documents)),
            )


def _labels_differ(one: Row, other: Row) -> bool:
    """Whether version, precision or batch size differ; empty ones are ignored."""
    pairs = zip(_key(one, LABEL), _key(other, LABEL), strict=True)
    return any(a and b and a != b for a, b in pairs)


def _grouped(rows: Iterable[Row], columns: list[str]) -> dict[tuple, list[Row]]:
    """Rows grouped by some columns; groups keep the order of their first rows."""
    groups = defaultdict(list)
    for row in rows:
        groups[_key(row, columns)].append(row)
    return groups


def _key(row: Row, columns: list[str]) -> tuple:
    return tuple(None if pd.isna(value := getattr(row, name)) else value for name in columns)


def _label(row: Row) -> str:
    """What was run, such as "OneFlow 0.2.0, w/o clip, bert_base, fp32, batch 32"."""
    version = getattr(row, "framework_version", "")
    batch = row.batch_size_per_device
    parts = [
        f"{row.framework} {version}".strip(),
        row.words,
        row.model,
        row.precision,
        "" if pd.isna(batch) else f"batch {batch}",
    ]
    return ", ".join(filter(None, parts))


def _cell(row: Row) -> str:
    return f"{_label(row)}, {row.topology}"


def _words(facts: pd.DataFrame) -> list[str]:
    """The variants in a fixed order, without those that need no words."""
    unsaid = load_definitions().unsaid
    return [
        "; ".join(sorted({*variant.split("; ")} - unsaid.get(framework, frozenset()) - {""}))
        for framework, variant in zip(facts["framework"], facts["variant"], strict=True)
    ]


def _half_units(facts: pd.DataFrame, column: str, document: list[str]) -> pd.Series:
    """Half a unit of the last decimal that a document prints in a column.

    Documents drop trailing zeros: the longest number shows how all were rounded.
    """
    decimals = facts[column].map(lambda number: -number.as_tuple().exponent, na_action="ignore")
    longest = decimals.groupby([facts[name] for name in document]).transform("max")
    return longest.map(lambda places: Decimal(5).scaleb(-int(places) - 1), na_action="ignore")


if __name__ == "__main__":
    main()
