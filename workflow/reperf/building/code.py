"""Which files decide a result, so that editing one reruns that result and no other."""

import hashlib
import os
import re
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path

from reperf.errors import ReperfError

PACKAGE = Path(__file__).resolve().parents[1]
# Every call reads all code: Python's own parser would take a tenth of the planning time.
_IMPORT = re.compile(
    r"^[ \t]*(?:from +([\w.]+) +import +(\([^)]*\)|.+)|import +(.+))", flags=re.MULTILINE
)

# What tells Python nothing: a docstring, which follows a colon; a line that is empty, or holds a
# comment alone; and a comment beside code. Other strings are kept, with all that they hold. The
# tokenize module takes three times as long.
_REMARK = re.compile(
    r"""(?<![^:]\n)(?<=\n)[ \t]*r?(?:"{3}(?:\\.|[^\\])*?"{3}|'{3}(?:\\.|[^\\])*?'{3})[ \t]*\n"""
    r"""(?!\s*[])},])|(?<=\n)[ \t\f]*(?:#[^\n]*)?\n|[ \t]*#[^\n]*"""
    r"""|(?P<kept>"{3}(?:\\.|[^\\])*?"{3}|'{3}(?:\\.|[^\\])*?'{3}"""
    r"""|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')""",
    flags=re.DOTALL,
)


def check_library(root: Path) -> None:
    """Refuse rules, beside a Snakefile, that would use another folder's library."""
    if root.resolve() / "workflow" / "reperf" != PACKAGE:
        raise ReperfError(
            f"{root}: has its rules here but its library in {PACKAGE}: the folder was moved or "
            "copied after `make`; make .venv/reperf-installed repairs it"
        )


def code_files(*modules: str) -> list[str]:
    """The files of some modules, and of all that they import, as a rule's inputs."""
    begun = [file for module in modules for file in _files_of(module)]
    return seen_from_here(sorted(closure(begun, _files_of)))


def code_behind(program: Path) -> list[str]:
    """The library files that a program imports, and those that they import, as a rule's inputs."""
    return seen_from_here(sorted(closure([program], _files_of) - {program}))


def digest_of_code(files: Iterable[Path], root: Path) -> str:
    """The SHA-256 of what some files tell Python to do, with their paths below `root`.

    Comments, docstrings in three quotes, and empty lines are left out.
    """
    digest = hashlib.sha256()
    for file in files:
        source = file.read_text(encoding="utf-8")
        text = _without_remarks(source) if file.suffix == ".py" else source
        digest.update(f"{file.relative_to(root).as_posix()} {len(text)}\n{text}".encode())
    return digest.hexdigest()


@cache
def _without_remarks(source: str) -> str:
    # A module's own docstring follows no colon of its own.
    return _REMARK.sub(lambda found: found["kept"] or "", f":\n{source}\n")


def closure(files: Iterable[Path], files_of: Callable[[str], Iterable[Path]]) -> set[Path]:
    """Files, and all that they import in turn: `files_of` gives the files of a module of ours."""
    found: set[Path] = set()
    waiting = list(files)
    while waiting:
        path = waiting.pop()
        if path not in found:
            found.add(path)
            waiting.extend(file for name in imported_by(path) for file in files_of(name))
    return found


def seen_from_here(paths: Iterable[Path]) -> list[str]:
    """Files as inputs of a rule: relative, so that moving the folder builds nothing again."""
    return [os.path.relpath(path) for path in paths]


@cache
def imported_by(path: Path) -> set[str]:
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
