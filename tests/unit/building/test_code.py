"""Steps are made again for the code that they use, and for no other."""

import ast
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reperf.building import code
from reperf.building.code import PACKAGE, STEPS, closure, code_files, digest_of_code

# A program's lines, and what may stand between and behind them without changing what it does.
STATEMENTS = st.one_of(
    st.text(alphabet="#'\"\\\n ab", max_size=12).map(lambda text: f"name = {text!r}"),
    # repr() writes such text in one line.
    st.lists(st.sampled_from(["", "  ", "# no comment", "text # too"]), max_size=4).map(
        lambda lines: 'name = """' + "\n".join(lines) + '\n"""'
    ),
    st.sampled_from(["if name:\n    name = f'{name}#'", "name = (\n    1,\n    '#',\n)"]),
)
NOTHING = st.lists(st.sampled_from(["", "   ", "# a comment", "    # name = 'other'"]), max_size=3)
BEHIND = st.sampled_from(["", "  # a comment", '  # """\''])


JOBS_ALONE = {
    "matplotlib",
    "numpy",
    "reperf.doctor.diagnosis",
    "reperf.drawing",
    "reperf.report",
    "reperf.training.largest",
    "reperf.training.train",
}
"""Modules that no call needs before a job starts."""


def names(step: str) -> set[str]:
    root = PACKAGE.parent
    files = code_files(f"reperf.steps.{step}")
    return {Path(path).resolve().relative_to(root).as_posix() for path in files}


def test_a_call_imports_nothing_that_only_its_jobs_need():
    root = PACKAGE.parent
    rules = [root.parent / "Snakefile", *(root / "rules").iterdir()]
    imports = {
        line
        for path in rules
        for line in path.read_text(encoding="utf-8").splitlines()
        if line.startswith(("from reperf.", "import reperf."))
    }
    program = "\n".join([*sorted(imports), "import sys", "print(*sys.modules)"])
    answer = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert not JOBS_ALONE & set(answer.stdout.split())


def test_the_files_of_several_steps_are_read_once(monkeypatch):
    read = []
    monkeypatch.setattr(code, "sha256", lambda path: read.append(path) or "")
    for one in (code.code_of, code._name_and_digest):
        one.cache_clear()
    try:
        code.code_of("measure")
        code.code_of("summarise")
    finally:
        for one in (code.code_of, code._name_and_digest):
            one.cache_clear()
    assert len(read) == len(set(read))


def test_a_step_stands_for_all_that_it_imports():
    assert {
        "reperf/steps/measure.py",
        "reperf/measuring/measure.py",
        "reperf/logs/facts.py",
        "reperf/errors.py",
        "reperf/logs/formats/mllog.py",
    } <= names("measure")


def test_code_that_a_result_does_not_need_does_not_count():
    assert not {
        "reperf/drawing/figures.py",
        "reperf/training/launch.py",
        "reperf/training/train.py",
    } & names("measure")


def test_a_package_stands_for_what_it_takes_from_its_modules():
    whole = {f"reperf/config/{path.name}" for path in (PACKAGE / "config").glob("*.py")}
    assert whole - names("measure") == {"reperf/config/page.py"}


def test_a_module_stands_for_its_package_too():
    assert {"reperf/measuring/__init__.py", "reperf/systems/__init__.py"} <= names("measure")


def test_a_package_that_looks_for_its_modules_stands_for_all_of_them():
    formats = {
        f"reperf/logs/formats/{path.name}" for path in (PACKAGE / "logs/formats").glob("*.py")
    }
    assert formats <= names("measure")
    assert not formats & names("summarise")


def test_figures_decide_no_number():
    drawing = {f"reperf/drawing/{path.name}" for path in (PACKAGE / "drawing").glob("*.py")}
    assert drawing <= names("draw_figures")
    for step in ("convert", "measure", "summarise", "join_tables"):
        assert not drawing & names(step)


def test_a_package_stands_for_the_data_beside_its_code():
    templates = {path.name for path in (PACKAGE / "report").rglob("*.j2")}
    assert templates
    assert templates <= {Path(name).name for name in names("report")}


@pytest.mark.parametrize("step", sorted(path.stem for path in STEPS.glob("[!_]*.py")))
def test_only_files_that_are_there_are_named(step: str):
    files = code_files(f"reperf.steps.{step}")
    assert files
    assert all(Path(path).is_file() for path in files)


def imported(source: Path) -> set[str]:
    """What Python's own parser says that a file imports."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(source.read_bytes())):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{source}: a relative import"
            names.add(node.module)
            names.update(f"{node.module}.{alias.name}" for alias in node.names)
    return names


def found(source: Path) -> set[str]:
    """What the library finds that a file imports."""
    names: set[str] = set()
    closure([source], lambda name: names.add(name) or [])
    return names


def test_no_import_is_missed():
    sources = sorted(PACKAGE.parent.rglob("*.py"))
    assert len(sources) > 400
    missed = {str(source): imported(source) - found(source) for source in sources}
    assert {source: names for source, names in missed.items() if names} == {}


def test_an_import_is_seen_however_it_is_written(tmp_path: Path):
    source = tmp_path / "source.py"
    source.write_text(
        "import one, two.three as four\n"
        "from five import (  # noqa\n    six as seven,\n    eight,\n)\n"
        "def function():\n    from nine.ten import eleven\n"
    )
    assert imported(source) <= found(source)


def digest_of_text(folder: Path, text: str) -> str:
    source = folder / "source.py"
    source.write_text(text, encoding="utf-8")
    return digest_of_code([source], folder)


@given(program=st.lists(st.tuples(STATEMENTS, NOTHING, BEHIND), min_size=1, max_size=5))
def test_comments_and_empty_lines_tell_python_nothing(program, tmp_path_factory):
    folder = tmp_path_factory.getbasetemp()
    plain = "".join(statement + "\n" for statement, _, _ in program)
    commented = "".join(
        "".join(line + "\n" for line in nothing) + statement + behind + "\n"
        for statement, nothing, behind in program
    )
    assert ast.dump(ast.parse(plain)) == ast.dump(ast.parse(commented))
    assert digest_of_text(folder, plain) == digest_of_text(folder, commented)


@pytest.mark.parametrize(
    "remark",
    ['"""One."""', "'''One\n\n  and more.\n'''", "r'one'", "b'one'", '"one"  # and more'],
)
def test_a_docstring_tells_python_nothing(tmp_path: Path, remark: str):
    plain = "a = 1\nclass B:\n    c = 'd'\n    def e(self):\n        return 'f'\n"
    told = plain.replace("class B:\n", f"{remark}\nclass B:\n    {remark}\n")
    told = f"{remark}\n" + told.replace("self):\n", f"self):\n        {remark}\n")
    ast.parse(told)
    assert digest_of_text(tmp_path, plain) == digest_of_text(tmp_path, told)


@given(one=st.lists(STATEMENTS, max_size=4), other=st.lists(STATEMENTS, max_size=4))
def test_programs_that_differ_have_digests_that_differ(one, other, tmp_path_factory):
    folder = tmp_path_factory.getbasetemp()
    texts = ["".join(line + "\n" for line in lines) for lines in (one, other)]
    same = ast.dump(ast.parse(texts[0])) == ast.dump(ast.parse(texts[1]))
    assert same or digest_of_text(folder, texts[0]) != digest_of_text(folder, texts[1])


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
        ('a = """\n# one\n', 'a = """\n# other\n'),  # no program: all of it counts
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


def test_a_step_is_another_once_code_that_it_uses_is(tmp_path: Path):
    library = shutil.copytree(
        PACKAGE, tmp_path / PACKAGE.name, ignore=shutil.ignore_patterns("__pycache__")
    )
    ask = "from reperf.building.code import code_of; print(*map(code_of, {}))"
    steps = ["summarise", "draw_figures", "report"]

    def codes() -> list[str]:
        command = [sys.executable, "-c", ask.format(steps)]
        environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
        return subprocess.check_output(command, env=environment, text=True).split()

    before = codes()
    assert len(set(before)) == len(steps)
    for edited, changed in {
        "drawing/palette.py": [False, True, True],
        "measuring/summary.py": [True, False, True],
        "report/templates/report.md.j2": [False, False, True],
    }.items():
        with (library / edited).open("a") as file:
            file.write("\n")
        after = codes()
        assert [one != other for one, other in zip(before, after, strict=True)] == changed, edited
        before = after
