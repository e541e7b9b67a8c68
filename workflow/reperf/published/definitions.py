"""What data/published/tables.yaml says: which rows of the facts make up which table."""

from functools import cache

import yaml

from reperf.faults import Model
from reperf.published.numbers import TABLES


class Variant(Model):
    """A variant that the documents print: reperf's name for it, and the words that tables show."""

    id: str
    label: str


class Series(Model):
    """A column of a table: which rows of the document it shows."""

    framework: str
    variant: str | None = None  # as printed, instead of the table's
    model: str | None = None  # one of the table's
    batch_size: int | None = None  # instead of the table's
    system: str | None = None  # instead of the framework's; also an entry, such as "jax+no-clip"
    label: str | None = None  # instead of one made of framework, variant and batch size


class Heading(Model):
    """What a table is about.

    Attributes:
        id: the table's name in paths.
        title: what was trained and how.
        report: the title of the report.
        source: the document that printed the numbers, as data/published/ names it.
        workload: reperf's name of what is trained; empty if the table holds several models.
        precision: fp32 or amp.
        batch_size: samples per device; None if the columns differ or the document gives none.
        notes: what to know when comparing the numbers.
    """

    id: str
    title: str
    report: str
    source: str
    workload: str = ""
    precision: str
    batch_size: int | None = None
    notes: tuple[str, ...] = ()


class Table(Heading):
    """Which published numbers make up a table."""

    models: tuple[str, ...]
    variant: str = ""
    series: tuple[Series, ...]


class Definitions(Model):
    """The whole file."""

    systems: dict[str, str]
    variants: dict[str, Variant]
    unsaid: dict[str, frozenset[str]]
    tables: tuple[Table, ...]


@cache
def load_definitions() -> Definitions:
    """Read data/published/tables.yaml."""
    return Definitions.model_validate(yaml.safe_load(TABLES.read_text(encoding="utf-8")))
