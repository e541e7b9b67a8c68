"""The published numbers as their documents print them."""

from decimal import Decimal
from functools import cache
from pathlib import Path

import pandas as pd

from reperf.layout import PUBLISHED_FILES

NUMBERS, REPEATS, TABLES = PUBLISHED_FILES

SHAPE = ("num_nodes", "devices_per_node", "num_devices")
COUNTS = ("batch_size_per_device", *SHAPE, "repeat")
PRINTED = ("value", "speedup_published", "throughput", "median_published")


def read_facts(path: Path) -> pd.DataFrame:
    """Read a file of facts; all rows are kept, in their order.

    Printed numbers become `Decimal`, because their digits say how they were rounded, or None where
    the document prints none. Sizes and counts become nullable integers. One column is added:
    topology, such as 2n8g, or 4n where only nodes are counted.
    """
    facts = pd.read_csv(path, dtype=str, keep_default_na=False)
    for column in facts.columns.intersection(COUNTS):
        facts[column] = pd.to_numeric(facts[column]).astype("Int64")
    for column in facts.columns.intersection(PRINTED):
        numbers = [Decimal(text) if text else None for text in facts[column]]
        facts[column] = pd.Series(numbers, dtype=object)
    facts["topology"] = [
        f"{nodes}n" + ("" if pd.isna(devices) else f"{devices}g")
        for nodes, devices in zip(facts["num_nodes"], facts["devices_per_node"], strict=True)
    ]
    return facts


@cache
def published_numbers() -> pd.DataFrame:
    """published.csv: one row per published number."""
    return read_facts(NUMBERS)


@cache
def published_repeats() -> pd.DataFrame:
    """repeats.csv: one row per published repeat."""
    return read_facts(REPEATS)
