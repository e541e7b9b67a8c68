"""Where the published numbers contradict each other: data/published/find_discrepancies.py."""

from dataclasses import dataclass
from typing import Literal

import pandas as pd

from reperf.published.published_tables import DISCREPANCIES

DiscrepancyKind = Literal["speedup", "value", "median", "label"]


@dataclass(frozen=True)
class Discrepancy:
    """One contradiction.

    Attributes:
        kind: speedup (it does not follow from its throughputs), value (documents differ on a cell),
            median (it is not that of the cell's repeats) or label (documents print one series of
            numbers as two different things).
        where: the cell, or the framework and model of the series.
        what: what is wrong, in words.
        values: the values that contradict each other, as printed or computed.
        sources: where each value is from.
    """

    kind: DiscrepancyKind
    where: str
    what: str
    values: tuple[str, ...]
    sources: tuple[str, ...]

    def __str__(self) -> str:
        pairs = zip(self.values, self.sources, strict=True)
        return f"{self.where}: {self.what}: " + "; ".join(f"{v} ({s})" for v, s in pairs)


def discrepancies() -> list[Discrepancy]:
    """The contradictions among the published facts, kind by kind, in the order of the documents."""
    rows = pd.read_csv(DISCREPANCIES, dtype=str, keep_default_na=False)
    return [
        Discrepancy(kind, where, what, tuple(values["value"]), tuple(values["source"]))
        for (_, kind, where, what), values in rows.groupby(
            ["number", "kind", "where", "what"], sort=False
        )
    ]
