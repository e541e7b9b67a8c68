"""A logger for Snakemake that shows what people want to know; the rest goes to a file under logs/.

Snakemake finds it by its name, as `logger: [reperf]`. A dry run, and a call with --verbose,
--printshellcmds or --debug-dag, looks as it does without this logger.
"""

import logging
import os
import re
import sys
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from logging import LogRecord
from pathlib import Path
from typing import TYPE_CHECKING, Optional

from snakemake_interface_logger_plugins.base import LogHandlerBase
from snakemake_interface_logger_plugins.common import LogEvent
from snakemake_interface_logger_plugins.settings import LogHandlerSettingsBase

if TYPE_CHECKING:
    from collections.abc import Mapping

    from reperf.config import Suite
    from reperf.progress.state import Line

__all__ = ["LogHandler", "LogHandlerSettings"]


@dataclass
class LogHandlerSettings(LogHandlerSettingsBase):
    """What a profile tells the logger."""

    place: Optional[str] = field(  # noqa: UP045 - Snakemake reads the annotation
        default=None,
        metadata={
            "help": "where the profile runs a report: slurm; left out: this machine",
            "env_var": False,
            "required": False,
        },
    )


# Before the first job, all but this is shown: it may be the answer to --report or --unlock.
_NOISE = (
    "Building DAG of jobs",
    "Config file ",  # .. is extended by what the command line says
    "Using shell: ",
    "host: ",
    "Assuming unrestricted shared filesystem usage",
    "Conda environments: ignored",
    "Singularity containers: ignored",
)
# From then on, this is the only information of Snakemake's that people can use.
_STOPS = "Terminating processes"
_NEWS = (_STOPS, "Will exit after")
# Errors that others say better: the failed jobs themselves, and the last lines of the call.
_REPEATED = (
    "Exiting because a job execution failed",
    "WorkflowError:\nAt least one job did not complete successfully",
)
RUN = "train"
"""The rule that makes runs."""
_REASONS = "Reasons:"  # why jobs run, by their rules
# reperf keeps a list of its own of what was made from what, see reperf.building.made.
_NO_METADATA = " have missing provenance/metadata "
# What it says of a file that somebody mistyped, see `MissingRuleException`.
_NO_RULE = re.compile(r"No rule to produce (.+) \(if you use input functions ", re.DOTALL)


class LogHandler(LogHandlerBase):
    """`logger: [reperf]`; called in a thread of its own, one record after the other."""

    suites: "Mapping[str, Suite] | None" = None
    """Those of the report, by name, set by the workflow: they say what is measured."""
    place: str | None = None
    """Where the profile of this call runs a report: slurm; None: on this machine."""
    writes_to_stream = True
    writes_to_file = False
    has_filter = True
    has_formatter = True
    needs_rulegraph = False

    def __post_init__(self) -> None:
        from reperf.progress.output import PlainLines  # noqa: PLC0415
        from reperf.progress.state import Progress  # noqa: PLC0415
        from snakemake.logging import (  # noqa: PLC0415 - Snakemake imports its plugins early
            ColorizingTextHandler,
            DefaultFilter,
            DefaultFormatter,
        )

        LogHandler.place = self.settings.place if self.settings else None
        settings = self.common_settings
        quiet = {one.name for one in settings.quiet or ()}
        self._says_progress = not quiet & {"ALL", "RULES", "PROGRESS"}
        self._says_warnings = "ALL" not in quiet
        self._formatter = DefaultFormatter(None, settings.show_failed_logs)
        self._snakemakes_own = None
        if settings.dryrun or settings.verbose or settings.printshellcmds or settings.debug_dag:
            self._snakemakes_own = ColorizingTextHandler(
                settings.nocolor,
                sys.stdout if settings.stdout else sys.stderr,
                DefaultFormatter(settings.quiet, settings.show_failed_logs),
                DefaultFilter(
                    settings.quiet,
                    settings.debug_dag,
                    settings.verbose,
                    settings.dryrun,
                    settings.printshellcmds,
                ),
            )
        # What a dry run would do is a table, unless somebody asks for all of it.
        loud = settings.verbose or settings.printshellcmds or settings.debug_dag or settings.quiet
        self._counts_runs = settings.dryrun and not loud
        self._runs_to_come: list[tuple[str, str, str]] = []
        self._progress = Progress()
        self._screen = PlainLines(sys.stderr)
        self._begun = False
        self._log = None
        self._early: list[str] = []
        self._cause = ""
        self._failed = False
        self._stopping = False

    def emit(self, record: LogRecord) -> None:
        try:
            if line := self._of_mistyped(record):
                self._failed = True
                self._say_always(line, bad=True)
                return
            if self._snakemakes_own is not None:
                if not (self._counts_runs and self._is_counted(record)):
                    self._snakemakes_own.handle(record)
                return
            self._keep(record)
            self._tell(record)
        except BrokenPipeError:  # the reader has gone: snakemake -n | head
            self._write_no_more()
        except Exception:
            self.handleError(record)

    def close(self) -> None:
        """End the display, and name the log if anything failed. Snakemake may call it twice."""
        log, self._log = self._log, None
        self._tell_runs_to_come()
        self._screen.close()
        if log is not None:
            if self._failed:
                self._say_always(f"the full output is in {log.path}")
            log.close()
        super().close()

    def _write_no_more(self) -> None:
        """Python would write the rest of the buffer at its end, and complain."""
        gone = self._snakemakes_own.stream
        os.dup2(os.open(os.devnull, os.O_WRONLY), gone.fileno())

    def _is_counted(self, record: LogRecord) -> bool:
        """Whether the tables of a dry run say what a record does, or nobody needs it."""
        event = getattr(record, "event", None)
        if event == LogEvent.JOB_INFO and record.rule_name == RUN:
            found = record.wildcards
            self._runs_to_come.append((found["suite"], found["entry"], found["topology"]))
        if event == LogEvent.RUN_INFO:  # it comes before the jobs, and again behind them
            again, self._begun = self._begun, True
            return again
        about_jobs = event in (LogEvent.JOB_INFO, LogEvent.WORKFLOW_STARTED)
        message = record.getMessage()
        told = message.startswith((*_NOISE, _REASONS)) or _NO_METADATA in message
        return about_jobs or told

    def _tell_runs_to_come(self) -> None:
        """The table of a dry run, below all else."""
        runs, self._runs_to_come = self._runs_to_come, []
        if runs and self.suites is not None:
            from reperf.plans.costs import AS_A_WHOLE, table_of_runs  # noqa: PLC0415

            lines = ["", *table_of_runs(runs, self.suites), "", AS_A_WHOLE]
            try:
                print("\n".join(lines), file=self._snakemakes_own.stream, flush=True)
            except BrokenPipeError:
                self._write_no_more()

    def _of_mistyped(self, record: LogRecord) -> str:
        """What to say if somebody asked for a file that no rule makes; "" otherwise."""
        is_one = getattr(record, "exception", "") == "MissingRuleException"
        if not (is_one and (found := _NO_RULE.search(record.getMessage()))):
            return ""
        from reperf.targets import not_a_target  # noqa: PLC0415

        return not_a_target(found[1].strip(), "no rule makes it", self.suites or {}, self.place)

    def _keep(self, record: LogRecord) -> None:
        """Add a record to the full log, which begins with the first job."""
        text = self._formatter.format(record)
        if not text or text in ("None", "Shell command: None"):
            return
        if self._log is not None:
            self._log.write(f"{text}\n")
        elif not self._begun:
            self._early.append(f"{text}\n")

    def _tell(self, record: LogRecord) -> None:
        event = getattr(record, "event", None)
        if event == LogEvent.RUN_INFO:
            self._begin(record)
        elif event == LogEvent.JOB_INFO:
            self._say(
                self._progress.started(
                    record.jobid,
                    rule=record.rule_name,
                    message=record.rule_msg,
                    wildcards=record.wildcards,
                    logs=record.log,
                    outputs=record.output,
                )
            )
        elif event == LogEvent.JOB_FINISHED:
            self._say(self._progress.finished(record.job_id))
        elif event == LogEvent.JOB_ERROR and not self._stopping:
            self._failed = True
            cause, self._cause = self._cause, ""
            line = self._progress.failed(
                record.jobid, record.rule_name, record.log, cause, record.rule_msg or ""
            )
            self._say_always(line.text, bad=True)
        elif event is None or event == LogEvent.ERROR:
            self._tell_message(record, record.getMessage())

    def _begin(self, record: LogRecord) -> None:
        """The plan is made, jobs follow."""
        from reperf.progress.output import FullLog, screen  # noqa: PLC0415

        self._begun = True
        if self.suites is not None:
            self._progress.suites = self.suites
        plan = self._progress.planned(record.stats)
        with suppress(OSError):
            self._log = FullLog(Path("logs", f"{datetime.now():%Y-%m-%dT%H%M%S}.log"))
            self._log.write("".join(self._early))
        self._early = []
        wants_color = self._says_progress and not self.common_settings.nocolor
        self._screen = screen(self._progress, color=wants_color)
        self._say(plan)

    def _tell_message(self, record: LogRecord, message: str) -> None:
        """Show Snakemake's messages that are not events, where people can use them."""
        if record.levelno >= logging.ERROR:
            exception = getattr(record, "exception", "")
            if self._begun and exception == "RuleException":  # the job's own failure comes next
                self._cause = message.splitlines()[-1]
            elif not message.startswith(_REPEATED):
                self._failed = True
                self._say_always(message, bad=True)
        elif record.levelno >= logging.WARNING:
            if self._says_warnings:
                self._say_always(message)
        elif not self._begun:
            if self._says_warnings and not message.startswith(_NOISE):
                self._say_always(message)
        elif message.startswith(_NEWS):
            self._failed = True
            self._stopping = self._stopping or message.startswith(_STOPS)
            self._say_always(message)

    def _say(self, line: "Line | None") -> None:
        if line is not None and self._says_progress:
            self._screen.say(line)

    def _say_always(self, text: str, *, bad: bool = False) -> None:
        from reperf.progress.state import Line  # noqa: PLC0415

        self._screen.say(Line(text, bad))
