"""Seals: a job's products, what they were made from, and whether they are still that."""

from pathlib import Path

import pytest
from reperf.building.seals import Seal, sealed
from reperf.errors import ReperfError


@pytest.fixture
def made(tmp_path: Path, monkeypatch) -> Seal:
    """The seal of a table made from a log."""
    monkeypatch.chdir(tmp_path)
    Path("log").write_text("one")
    build("table", "log")
    return Seal.of("table")


def build(output: str, *inputs: str, **params: object) -> None:
    with sealed([output], inputs, params):
        Path(output).write_text("".join(Path(path).read_text() for path in inputs))


def test_what_was_built_holds(made: Seal):
    assert made.edited() == []
    assert made.holds({})


def test_an_edited_product_is_named(made: Seal):
    Path("table").write_text("two")
    assert made.edited() == ["table"]
    Path("table").unlink()
    assert made.edited() == ["table"]


def test_other_parameters_and_other_inputs_break_it(made: Seal):
    assert not made.holds({"window": 3})
    Path("log").touch()
    assert made.holds({})
    Path("log").write_text("two")
    assert not made.holds({})
    Path("log").unlink()
    assert not made.holds({})


def test_an_edited_product_is_not_read(made: Seal):
    build("figure", "table")
    Path("table").write_text("two")
    with pytest.raises(ReperfError, match=r"^table: has changed since it was built"):
        build("figure", "table")


def test_a_folder_is_a_product_too(made: Seal):
    with sealed(["folder"], [], {}):
        Path("folder/below").mkdir(parents=True)
        Path("folder/below/a").write_text("a")
    Path("folder/.hidden").touch()
    assert Seal.of("folder").edited() == []
    Path("folder/below/b").write_text("b")
    assert Seal.of("folder").edited() == ["folder"]


def test_what_fails_is_not_sealed(made: Seal):
    with pytest.raises(ZeroDivisionError), sealed(["other"], [], {}):
        raise ZeroDivisionError
    assert Seal.of("other") is None


@pytest.mark.parametrize("part", ["", "[]", "{}", '{"outputs": 1}', "["])
def test_a_seal_that_is_none_is_none(made: Seal, part: str):
    Path("results/.seals/table.json").write_text(part * 10_000)
    assert Seal.of("table") is None
