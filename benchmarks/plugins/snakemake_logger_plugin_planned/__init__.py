"""A logger that writes each job's rule, inputs and outputs to $PLANNED, one JSON list a line.

benchmarks/bare.py asks Snakemake with it what a dry run would do, through a public interface.
"""

import json
import os
from logging import LogRecord
from pathlib import Path

from snakemake_interface_logger_plugins.base import LogHandlerBase
from snakemake_interface_logger_plugins.common import LogEvent

__all__ = ["LogHandler"]


class LogHandler(LogHandlerBase):
    """`--logger planned`."""

    writes_to_stream = False
    writes_to_file = False
    has_filter = True
    has_formatter = True
    needs_rulegraph = False

    def __post_init__(self) -> None:
        self._jobs = []

    def emit(self, record: LogRecord) -> None:
        if getattr(record, "event", None) == LogEvent.JOB_INFO:
            job = [record.rule_name, list(record.input), list(record.output)]
            self._jobs.append(f"{json.dumps(job)}\n")

    def close(self) -> None:
        Path(os.environ["PLANNED"]).write_text("".join(self._jobs), encoding="utf-8")
        super().close()
