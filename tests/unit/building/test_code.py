"""Steps are made again for the code that they use, and for no other."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reperf.building.code import PACKAGE, code_behind, digest_of_code, imported_by
from reperf.data import KIND_NAMES

# A program's lines, and what may stand between and after them without changing what it does.
STATEMENTS = st.one_of(
    st.text(alphabet="#'\"\\\n ab", max_size=12).map(lambda text: f"name = {text!r}"),
    # repr() writes such text in one line.
    st.lists(st.sampled_from(["", "  ", "# no comment", "text # too"]), max_size=4).map(
        lambda lines: 'name = """' + "\n".join(lines) + '\n"""'
    ),
    st.sampled_from(["if name:\n    name = f'{name}#'", "name = (\n    1,\n    '#',\n)"]),
)
NOTHING = st.lists(st.sampled_from(["", "   ", "# a comment", "    # name = 'other'"]), max_size=3)
AFTER = st.sampled_from(["", "  # a comment", '  # """\''])

SCRIPTS = PACKAGE.parent / "scripts"

JOBS_ALONE = {
    *("matplotlib", "numpy", "reperf.records.diagnosis", "reperf.drawing", "reperf.report"),
    *("reperf.training.largest", "reperf.training.train"),
}
"""Modules that no call needs before a job starts."""


def test_a_call_imports_nothing_that_only_its_jobs_need():
    rules = [PACKAGE.parents[1] / "Snakefile", *(PACKAGE.parent / "rules").iterdir()]
    lines = {line for path in rules for line in path.read_text(encoding="utf-8").splitlines()}
    imports = {line for line in lines if line.startswith(("from reperf.", "import reperf."))}
    program = "\n".join([*sorted(imports), "import sys", "print(*sys.modules)"])
    assert not JOBS_ALONE & set(
        subprocess.check_output([sys.executable, "-c", program], text=True).split()
    )


def names(step: str) -> set[str]:
    """The files of the code behind a step, below the library's folder."""
    files = [Path(path) for path in code_behind(SCRIPTS / f"{step}.py")]
    assert files
    assert all(path.is_file() for path in files)
    return {path.resolve().relative_to(PACKAGE).as_posix() for path in files}


def below(folder: str, pattern: str = "*.py") -> set[str]:
    found = {path.relative_to(PACKAGE).as_posix() for path in (PACKAGE / folder).rglob(pattern)}
    assert found
    return found


@pytest.mark.parametrize(
    ("steps", "count", "files"),
    [
        # What it imports, and what that imports in turn.
        ("measure", True, {"measuring/measure.py", "logs/facts.py"}),
        # A module stands for its package, too, and a package for what it takes from its modules.
        ("measure", True, {"measuring/__init__.py", "systems/__init__.py"}),
        ("measure", True, below("config")),
        ("measure", False, {"training/launch.py", "training/train.py"}),
        # A package that looks for its modules stands for all of them.
        ("measure", True, below("logs/formats")),
        ("summarise", False, below("logs/formats")),
        # And for the data beside its code.
        ("report", True, below("report", "*.j2")),
        # Figures decide no number.
        ("draw_figures", True, below("drawing")),
        ("convert measure summarise join_tables", False, below("drawing")),
    ],
)
def test_a_step_stands_for_all_that_it_imports_and_for_nothing_else(steps, count, files):
    for step in steps.split():
        assert files & names(step) == (files if count else set())


def imported(source: Path) -> set[str]:
    """What Python's own parser says that a file imports."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(source.read_bytes())):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{source}: a relative import"
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return names


def test_no_two_modules_have_one_name():
    """Commands may: each is called as what it calls; kinds of data have one interface."""
    alike = {PACKAGE / "commands", *(PACKAGE / "data" / kind for kind in KIND_NAMES)}
    names = [path.stem for path in PACKAGE.rglob("[!_]*.py") if path.parent not in alike]
    assert sorted(set(names)) == sorted(names)


def test_no_import_is_missed_however_it_is_written(tmp_path: Path):
    source = tmp_path / "source.py"
    source.write_text(
        "import one, two.three as four\n"
        "from five import (  # noqa\n    six as seven,\n    eight,\n)\n"
        "def function():\n    from nine.ten import eleven\n"
    )
    sources = [source, *sorted(PACKAGE.parent.rglob("*.py"))]
    assert len(sources) > 300
    missed = {str(source): imported(source) - imported_by(source) for source in sources}
    assert {source: names for source, names in missed.items() if names} == {}


def digest_of_text(folder: Path, text: str) -> str:
    source = folder / "source.py"
    source.write_text(text, encoding="utf-8")
    return digest_of_code([source], folder)


PROGRAMS = st.lists(st.tuples(STATEMENTS, NOTHING, AFTER), min_size=1, max_size=4)


@given(one=PROGRAMS, other=PROGRAMS)
def test_comments_and_empty_lines_tell_python_nothing_and_all_else_does(
    one, other, tmp_path_factory
):
    folder = tmp_path_factory.getbasetemp()
    plain = "".join(statement + "\n" for statement, _, _ in one)
    commented = "".join(
        "".join(line + "\n" for line in nothing) + statement + after + "\n"
        for statement, nothing, after in one
    )
    others = "".join(statement + "\n" for statement, _, _ in other)
    trees = [ast.dump(ast.parse(text)) for text in (plain, commented, others)]
    digests = [digest_of_text(folder, text) for text in (plain, commented, others)]
    assert trees[0] == trees[1]
    assert digests[0] == digests[1]
    assert trees[0] == trees[2] or digests[0] != digests[2]


@pytest.mark.parametrize(
    "remark", ['"""One."""', "'''One\n\n  and more.\n'''", r'r"""\w # and more"""']
)
def test_a_docstring_tells_python_nothing(tmp_path: Path, remark: str):
    plain = "a = 1\nclass B:\n    c = 'd'\n    def e(self):\n        return 'f'\n"
    told = plain.replace("class B:\n", f"class B:\n    {remark}\n\n")
    told = f"{remark}\n" + told.replace("self):\n", f"self):\n        {remark}\n")
    ast.parse(told)
    assert digest_of_text(tmp_path, plain) == digest_of_text(tmp_path, told)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("a = 'b # c'\n", "a = 'b # d'\n"),
        ('a = """\n# b\n"""\n', 'a = """\n"""\n'),
        ('a = """\n\nb"""\n', 'a = """\nb"""\n'),
        ("if a:\n    b\n", "if a:\n     b\n"),
        ("a = (\n'b'\n)\n", "a = (\n'c'\n)\n"),
        ("'b'.join(a)\n", "'c'.join(a)\n"),
        ("if a: 'b'\n", "if c: 'b'\n"),
        ('a = {b:\n"""c"""\n}\n', 'a = {b:\n"""d"""\n}\n'),
        ('a = (\n"b"\n"""c"""\n)\n', 'a = (\n"b"\n"""d"""\n)\n'),
    ],
)
def test_what_only_looks_like_a_comment_counts(tmp_path: Path, one: str, other: str):
    assert digest_of_text(tmp_path, one) != digest_of_text(tmp_path, other)


def test_only_where_a_file_lies_below_the_root_counts(tmp_path: Path):
    digests = []
    for root, name in (("one", "a.py"), ("two", "a.py"), ("two", "b.py")):
        source = tmp_path / root / name
        source.parent.mkdir(exist_ok=True)
        source.write_text("a = 1\n")
        digests.append(digest_of_code([source], tmp_path / root))
    assert digests[0] == digests[1] != digests[2]
