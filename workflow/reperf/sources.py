"""Which files decide a result, so that editing one reruns that result and no other."""

import ast
import os
from collections.abc import Iterable
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent
SCRIPTS = PACKAGE.parent / "scripts"


def code_of(script: str) -> list[str]:
    """The code behind a rule: its script, and all library files that it imports in turn.

    Snakemake goes by a script's time stamp and does not know what it imports. As inputs of the
    rule, these files rerun it when their contents change, and only then.

    Args:
        script: name of a file in workflow/scripts, without its suffix.

    Returns:
        Paths as seen from here, templates and other data files of the packages included.
    """
    files: set[Path] = set()
    waiting = [SCRIPTS / f"{script}.py"]
    while waiting:
        path = waiting.pop()
        if path not in files:
            files.add(path)
            waiting.extend(_imported_by(path))
    return seen_from_here(sorted(files))


def seen_from_here(paths: Iterable[Path]) -> list[str]:
    """Files as inputs of a rule: relative, so that a folder that has moved is not built again."""
    return [os.path.relpath(path) for path in paths]


@cache
def _imported_by(path: Path) -> tuple[Path, ...]:
    if path.suffix != ".py":
        return ()
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module)
            # `from reperf.logs import mllog` names a module, `from reperf.files import sha256`
            # does not; what is no file is passed over.
            names.update(f"{node.module}.{alias.name}" for alias in node.names)
    ours = sorted(name for name in names if name.split(".")[0] == PACKAGE.name)
    return tuple(file for name in ours for file in _files_of(name))


def _files_of(module: str) -> list[Path]:
    """The files of one module: a package's are all of those below it."""
    stem = PACKAGE.joinpath(*module.split(".")[1:])
    if stem.is_dir() and stem != PACKAGE:
        inside = (path for path in stem.rglob("*") if "__pycache__" not in path.parts)
        return [path for path in inside if path.is_file()]
    source = stem.with_suffix(".py")
    return [source] if source.exists() else []
