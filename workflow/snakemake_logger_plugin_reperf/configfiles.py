"""Configuration files of a call with reperf's logger, read as reperf reads what people write.

Snakemake reads --configfile before a Snakefile and has no hook there. By itself, it has a traceback
for a file that is missing or not UTF-8, names neither file nor line where one is no YAML, lets the
last of two equal keys win, and waits forever for `*name` of `*name` of ... This is the one place
that touches its reader.
"""

import sys
from pathlib import Path

from reperf.building.call import check_options, options_of
from reperf.errors import ReperfError, one_line_errors
from reperf.written import read_written


def read_them_as_reperf_does() -> None:
    """Replace Snakemake's reader; a file that cannot be a configuration ends the call."""
    from snakemake.common import configfile  # noqa: PLC0415 - Snakemake imports its plugins early

    configfile._load_configfile = _read


def _read(path: Path | str, filetype: str = "Config") -> dict:
    with one_line_errors():
        check_options(options_of(sys.argv[1:]))
        content = read_written(path)
        if not isinstance(content, dict):
            raise ReperfError(f"{path}: allowed: a mapping of keys to values")
        return content
