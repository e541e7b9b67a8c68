"""The files of a configuration: a report says what is measured, a site's file where."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from reperf.config import Cluster, Report, load_report
from reperf.config.site import ENGINES
from reperf.errors import ReperfError
from reperf.layout import ROOT
from reperf.machine import resolve
from reperf.yaml_files import read_yaml_file

DEFAULT = Path("config.yaml")  # what a call measures that names no suites, as the Snakefile has it


def read_report(files: Sequence[Path], devices: int | None = None) -> tuple[Report, str]:
    """Read the report that Snakemake makes of the files after --configfile.

    Args:
        files: none: the report that it makes by itself.
        devices: read it for a node with so many GPUs; None: for this machine, or its cluster.

    Returns:
        The report, and its files as messages name them; or a ReperfError.
    """
    config = merged(files)
    if "suites" not in config:
        if not DEFAULT.exists():
            raise ReperfError(
                f"{DEFAULT}: No such file or directory; run it in reperf's folder, or name a "
                "report: --configfile FILE"
            )
        files = [DEFAULT, *files]
        config = merged(files)
    name = name_of(files)
    report = load_report(config, name)
    if devices and report.cluster:
        raise ReperfError(
            f"{name}: cluster: says how many GPUs a node has; allowed: without --devices"
        )
    if devices:  # all that is known of that node
        engine = report.container.engine or ENGINES[0]
        container = report.container.model_copy(update={"engine": engine})
        cluster = Cluster(nodes=1, devices_per_node=devices)
        report = report.model_copy(update={"cluster": cluster, "container": container})
    return resolve(report), name


def read_profile(
    profile: str | None, configfiles: Sequence[Path], devices: int | None = None
) -> tuple[Report, str, dict[str, Any]]:
    """Read the report that a profile runs; see read_report.

    Args:
        profile: a Snakemake profile's folder, here or in reperf's own folder; None: this machine.
        configfiles: instead of those that the profile names.

    Returns:
        The report, its files as messages name them, and the profile's settings; or a ReperfError.
    """
    settings: dict[str, Any] = read_yaml_file(_profile_file(profile)) if profile else {}
    named = settings.get("configfile", [])
    files = [named] if isinstance(named, str) else named
    return *read_report(configfiles or [*map(Path, files)], devices), settings


def _profile_file(profile: str) -> Path:
    for folder in (Path(profile), ROOT / profile):
        if (folder / "config.yaml").is_file():
            return folder / "config.yaml"
    profiles = [path.parent.name for path in sorted(ROOT.glob("*/config.yaml"))]
    allowed = ", ".join([*profiles, "none for this machine"])
    raise ReperfError(f"profile {profile}: not there; allowed: {allowed}")


def name_of(files: Iterable[Path | str]) -> str:
    """Files as messages name them, which do not say which of several is at fault."""
    return " + ".join(map(str, files))


def merged(files: Iterable[Path | str]) -> dict[str, Any]:
    """What files say together: the later over the earlier, key by key, a list as a whole."""
    from snakemake.utils import update_config  # noqa: PLC0415 - steps do without

    config: dict[str, Any] = {}
    for file in files:
        content = read_yaml_file(file)
        if not isinstance(content, dict):
            raise ReperfError(f"{file}: allowed: a mapping of keys to values")
        update_config(config, content)
    return config
