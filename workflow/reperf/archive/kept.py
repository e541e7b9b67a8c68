"""Archives of other reports, kept where a suite of the same name would replace them."""

import json
import logging
import os
import shutil
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from zipfile import BadZipFile, ZipFile

from reperf.archive.signature import signature_of
from reperf.config import load_report
from reperf.files import reading, sha256
from reperf.layout import ARCHIVE, SUITE_CONFIG
from reperf.member_names import CONFIG
from reperf.text import printable

logger = logging.getLogger("snakemake.logging")
"""Snakemake's own: its lines come from another thread, and keep their order."""


def keep_others(configs: Mapping[str, str]) -> None:
    """Keep the archives of other configurations under names of their own, and say so.

    Snakemake removes the files that a job is about to make. So this comes before the first job, and
    gives such an archive, and its signature, a second name: its day and the beginning of its
    SHA-256. An archive of the same configuration is not kept, nor is a file that is no zip.

    Args:
        configs: a suite's name -> the configuration that asks for it alone.
    """
    for suite, config in configs.items():
        path = Path(ARCHIVE.format(suite=suite))
        if not path.exists():
            continue
        with reading(path):
            if not _is_of_another(path, SUITE_CONFIG.format(suite=suite), config):
                continue
            day = datetime.fromtimestamp(path.stat().st_mtime, UTC).date()
            dated = path.with_name(f"{path.stem}.{day}-{sha256(path)[:8]}{path.suffix}")
            if dated.exists():
                continue
            _name_too(path, dated)
            if signature_of(path).exists():
                _name_too(signature_of(path), signature_of(dated))
        logger.warning(printable(f"{path} is of another configuration: it is kept as {dated}"))


def _is_of_another(path: Path, name: str, config: str) -> bool:
    """Whether an archive holds another configuration than this one, which has a name."""
    from reperf.archive.contents import config_of  # noqa: PLC0415 - slow; few calls find an archive

    try:
        with ZipFile(path) as archive:
            archived = archive.read(CONFIG) if CONFIG in archive.namelist() else b""
    except BadZipFile:
        return False
    return archived != config_of(load_report(json.loads(config), name))


def _name_too(path: Path, other: Path) -> None:
    """Give a file a second name; where the file system has no links, to a copy of it."""
    try:
        os.link(path, other)
    except OSError:
        shutil.copy2(path, other)
