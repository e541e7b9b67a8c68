"""Which files decide a result, so that editing one reruns that result and no other."""

import os
import re
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path

from reperf.errors import ReperfError

PACKAGE = Path(__file__).resolve().parents[1]
SCRIPTS = PACKAGE.parent / "scripts"
# Every call reads all code: Python's own parser would take a tenth of the planning time.
_IMPORT = re.compile(
    r"^[ \t]*(?:from +([\w.]+) +import +(\([^)]*\)|.+)|import +(.+))", flags=re.MULTILINE
)


def check_library(root: Path) -> None:
    """Refuse rules that would use another folder's library.

    Args:
        root: where the Snakefile lies.

    Raises:
        ReperfError: this library was installed from elsewhere.
    """
    if root.resolve() / "workflow" / "reperf" != PACKAGE:
        raise ReperfError(
            f"{root}: has its rules here but its library in {PACKAGE}: the folder was moved or "
            "copied after `make`; make .venv/reperf-installed repairs it"
        )


def code_of(script: str) -> list[str]:
    """The code behind a rule: its script, and all library files that it imports in turn.

    Snakemake goes by a script's time stamp and does not know what the script imports. As inputs,
    these files make the rule run again when their contents change, and only then.

    Args:
        script: name of a file in workflow/scripts, without its suffix.

    Returns:
        Paths relative to the working folder, including templates and other data of the packages.
    """
    return seen_from_here(sorted(closure([SCRIPTS / f"{script}.py"], _files_of)))


def closure(files: Iterable[Path], files_of: Callable[[str], Iterable[Path]]) -> set[Path]:
    """Files, and all that they import in turn.

    Args:
        files_of: gives the files of a module; none for a module that is not ours.
    """
    found: set[Path] = set()
    waiting = list(files)
    while waiting:
        path = waiting.pop()
        if path not in found:
            found.add(path)
            waiting.extend(file for name in _imported_by(path) for file in files_of(name))
    return found


def seen_from_here(paths: Iterable[Path]) -> list[str]:
    """Files as inputs of a rule: relative, so that moving the folder builds nothing again."""
    return [os.path.relpath(path) for path in paths]


@cache
def _imported_by(path: Path) -> set[str]:
    """The modules that a file may import, by their full names.

    `from reperf.logs import events` names a module, `from reperf.files import sha256` does not, and
    text may look like an import; whoever asks skips names that no file has.
    """
    if path.suffix != ".py":
        return set()
    names: set[str] = set()
    for package, members, modules in _IMPORT.findall(path.read_text(encoding="utf-8")):
        names.update(re.findall(r"[\w.]+", modules))
        if package:
            names.add(package)
            names.update(f"{package}.{member}" for member in re.findall(r"\w+", members))
    return names


@cache
def _files_of(module: str) -> list[Path]:
    """The files of one module of the library, as Python runs them to import it.

    Importing a module runs the `__init__.py` of its package, too; the library's own, which holds
    the version, decides no result. A package counts with the data beside its code, and one that
    looks for its modules at run time counts with every module that it could find.
    """
    library, *inside = module.split(".")
    stem = PACKAGE.joinpath(*inside)
    if library != PACKAGE.name or not inside:
        return []
    if stem.is_dir():
        first = stem / "__init__.py"
        every = "iter_modules" in first.read_text(encoding="utf-8")
        below = (path for path in stem.rglob("*") if "__pycache__" not in path.parts)
        return [first, *(p for p in below if p.is_file() and (every or p.suffix != ".py"))]
    file = stem.with_suffix(".py")
    if not file.exists():
        return []
    return [file, *_files_of(".".join([library, *inside[:-1]]))]
