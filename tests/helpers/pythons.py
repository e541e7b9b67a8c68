"""The Pythons that pyproject.toml promises, and where they are on this machine."""

import re
import shutil
import subprocess
import tomllib
from pathlib import Path

from reperf.layout import ROOT
from uv import find_uv_bin

from tests.helpers.refusal import cannot_run


def promised() -> tuple[str, str]:
    """The oldest and the newest: ("3.11", "3.13")."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    oldest, end = re.fullmatch(r">=3\.(\d+),<3\.(\d+)", project["requires-python"]).groups()
    return f"3.{oldest}", f"3.{int(end) - 1}"


def interpreter(version: str) -> str:
    """A Python of a version, for uv's `--python`: the machine's own, or one that uv downloads."""
    found = shutil.which(f"python{version}")
    if found and "shims" in Path(found).parts:  # pyenv's, which may be of a version not chosen
        folder = Path(found).parents[1] / "versions"
        found = next((str(p) for p in folder.glob(f"{version}.*/bin/python{version}")), None)
    if found:
        return found
    asked = [find_uv_bin(), "python", "install", "--no-bin", version]
    answer = subprocess.run(asked, check=False, capture_output=True, text=True)
    if answer.returncode:
        cannot_run(f"Python {version}, which uv cannot download: {answer.stderr.strip()[-200:]}")
    return version
