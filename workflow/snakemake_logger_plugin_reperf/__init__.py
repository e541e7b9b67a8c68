"""A logger for Snakemake that shows what people want to know; the rest goes to a file under logs/.

Snakemake finds it by its name, as `logger: [reperf]`. A dry run, and a call with --verbose,
--printshellcmds or --debug-dag, looks as it does without this logger.
"""

import logging
import os
import sys
from contextlib import suppress
from datetime import datetime
from logging import LogRecord
from pathlib import Path
from typing import TYPE_CHECKING

from snakemake_interface_logger_plugins.base import LogHandlerBase
from snakemake_interface_logger_plugins.common import LogEvent

if TYPE_CHECKING:
    from reperf.progress import Line

__all__ = ["LogHandler"]


# Before the first job, all but this is shown: it may be the answer to --report or --unlock.
_NOISE = (
    "Building DAG of jobs",
    "Config file ",  # .. is extended by what the command line says
    "Using shell: ",
    "host: ",
    "SLURM run ID: ",
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
# Warnings of the executor for Slurm that mean nothing here: an exclusive run asks for all memory by
# --mem=0; the node of a lost job is known from scontrol; and a caller may be a job itself.
_MEANS_NOTHING = (
    "No job memory information",
    "Could not retrieve node information",
    "You are running snakemake in a SLURM job context",
)


class LogHandler(LogHandlerBase):
    """`logger: [reperf]`; called in a thread of its own, one record after the other."""

    writes_to_stream = True
    writes_to_file = False
    has_filter = True
    has_formatter = True
    needs_rulegraph = False

    def __post_init__(self) -> None:
        from reperf.progress import PlainLines, Progress  # noqa: PLC0415
        from snakemake.logging import (  # noqa: PLC0415 - Snakemake imports its plugins early
            ColorizingTextHandler,
            DefaultFilter,
            DefaultFormatter,
        )

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
            if self._snakemakes_own is not None:
                self._snakemakes_own.handle(record)
                return
            self._keep(record)
            self._tell(record)
        except BrokenPipeError:  # the reader has gone: snakemake -n | head
            # Python would write the rest of the buffer at its end, and complain.
            os.dup2(os.open(os.devnull, os.O_WRONLY), self._snakemakes_own.stream.fileno())
        except Exception:
            self.handleError(record)

    def close(self) -> None:
        """End the display, and name the log if anything failed. Snakemake may call it twice."""
        log, self._log = self._log, None
        self._screen.close()
        if log is not None:
            if self._failed:
                self._say_always(f"the full output is in {log.path}")
            log.close()
        super().close()

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
        from reperf.progress import FullLog, screen  # noqa: PLC0415

        self._begun = True
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
            if self._says_warnings and not message.startswith(_MEANS_NOTHING):
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
        from reperf.progress import Line  # noqa: PLC0415

        self._screen.say(Line(text, bad))
