"""What a call of Snakemake asks for, and whether its report can be run from here."""

import os
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from reperf.building.code import check_library
from reperf.building.work_folder import check_folder
from reperf.config import Report, load_report
from reperf.configfiles import merged, name_of
from reperf.errors import ReperfError, faults_of
from reperf.layout import PLAN, PUBLISHED_FILES, RUN_RECORD
from reperf.machine import (
    check_compiler,
    check_containers,
    check_data,
    check_fits,
    check_memory,
    check_named_builds,
    resolve,
)
from reperf.plans.plan_files import SetPlan
from reperf.text import printable

NEWEST = "9.27"  # the newest Snakemake that reperf is tested with


def checked_report(config: Mapping[str, Any], workflow: Any) -> Report:  # noqa: ANN401 - Snakemake's
    """The report that a call of Snakemake is about, with its device decided, or a ReperfError.

    Args:
        config: the configuration that Snakemake has read.
        workflow: its own, for the names of the configuration's files.
    """
    import snakemake  # noqa: PLC0415 - steps do without

    check_folder(Path.cwd())
    check_library(Path(workflow.basedir))
    files = configfiles(workflow)
    merged(files)  # as Snakemake has, which lets a key appear twice
    name = name_of(files)
    if not {"--config", "-C"}.isdisjoint(sys.argv):
        name += " with --config"
    report = load_report(config, name)
    # In a Slurm job, the runs of a cluster's report may train one after the other.
    has_jobs = bool(workflow.nodes) or (report.slurm is not None and "SLURM_JOB_ID" in os.environ)
    check_profile(report, has_jobs=has_jobs, configfile=name)
    with faults_of(name):
        report = resolve(report)
    check_report(report, name)
    left_out = report.left_out()
    for line in (
        warning_of_version(snakemake.__version__),
        f"left out of this report: {left_out}" if left_out else "",
    ):
        if line:
            print(printable(f"reperf: {line}"), file=sys.stderr)
    return report


def check_report(report: Report, configfile: str) -> None:
    """Refuse a report, its device decided, that cannot be run here or lacks what it stands on."""
    with faults_of(configfile):
        for part in report.of_each_device():
            check_fits(part)
            check_memory(part)
            check_data(part)
            check_containers(part)
            check_named_builds(part)
            check_compiler(part)
        if any(suite.sources for suite in report.suites):
            from reperf.measuring.suite_rows import check_sources  # noqa: PLC0415 - slow

            check_sources(report)
    for data in report.data:
        # Once it is converted, the user's own input is no longer needed.
        if not any(Path("data", data.name).glob("*/manifest.json")):
            with faults_of(f"{configfile}: data.{data.name}"):
                data.of_kind.check()
    if report.baseline and not report.baseline.exists():
        raise ReperfError(
            f"{configfile}: baseline: {report.baseline}: no such file or folder; allowed: a "
            "report's folder, its archive or its measurements.csv"
        )
    for file in PUBLISHED_FILES:
        if not file.is_file():
            raise ReperfError(f"{file}: is not there; allowed: as reperf's repository holds it")


def check_set(folder: str | None) -> None:
    """Refuse a converted set, data/<name>/<format>, that is not its plan's, or has lost bytes."""
    if folder is None:
        return
    manifest = Path(folder, "manifest.json")
    plan = manifest.parents[1] / PLAN
    if manifest.exists() and plan.exists():
        data = SetPlan.read(plan).data.of_kind
        if manifest.parent.name in data.formats and not data.lies_at(manifest):
            raise ReperfError(
                f"{manifest}: not the data set that is asked for, or not all of it; once it is "
                "removed, the next call converts the set again"
            )


def check_profile(report: Report, *, has_jobs: bool, configfile: str) -> None:
    """Refuse a report for a cluster on this machine, and one for this machine on a cluster.

    `has_jobs` says whether Snakemake may run several jobs at once, as --profile slurm has it.
    """
    if report.slurm and not has_jobs:
        raise ReperfError(
            f"{configfile}: cluster: the report needs it; allowed: --profile slurm, a call within "
            "a Slurm job, or --profile hosts if `cluster` names hosts"
        )
    if report.cluster and not report.slurm and has_jobs:
        raise ReperfError(f"{configfile}: cluster.hosts: not Slurm's; allowed: --profile hosts")
    if has_jobs and not report.cluster:
        raise ReperfError(
            f"{configfile}: cluster: missing; --profile slurm and --jobs need it: add "
            "site.yaml to --configfile, see docs/cluster.md; on this machine: --cores"
        )


def warning_of_version(version: str) -> str:
    """What to say of a Snakemake that is newer than the newest one tested; "" if it is not."""
    here, newest = (tuple(map(int, text.split(".")[:2])) for text in (version, NEWEST))
    if here <= newest:
        return ""
    return f"Snakemake is {version} here; reperf is tested with versions up to {NEWEST}"


def trained_anew(workflow: Any, runs: Iterable[str]) -> set[str]:  # noqa: ANN401 - Snakemake's own
    """The folders of runs that a call trains although a try has ended: by --forcerun and the like.

    A job cannot see that it was forced: Snakemake's settings say so.
    """
    settings = workflow.dag_settings
    forced = {*settings.forcerun, *(settings.targets if settings.forcetargets else ())}
    every = settings.forceall or "train" in forced
    return {run for run in runs if every or f"{run}/{RUN_RECORD}" in forced}


def configfiles(workflow: Any) -> list[str]:  # noqa: ANN401
    """The configuration files, the later over the earlier; by short paths below this folder."""
    over = workflow.overwrite_configfiles
    given = (file for file in workflow.configfiles if file not in over)
    paths = [(os.path.relpath(file), str(file)) for file in (*given, *over)]
    return [path if here.startswith("..") else here for here, path in paths]
