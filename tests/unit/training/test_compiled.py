"""Which repeats share what a framework has compiled."""

from argparse import Namespace
from pathlib import Path

import pytest
from reperf.building.hold import CALL
from reperf.config import load_report
from reperf.training.compiled import compiled_folder
from trainers.contract.compilers import COMPILED, compiled_before

from tests.helpers.small_benchmark import SMALL

RUN = load_report(SMALL).run("small", "pytorch", "1n2g", 1).model_copy(update={"system": "jax"})


def test_repeats_of_a_cell_and_a_call_share_a_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(CALL, "here 1 today")
    first = compiled_folder(RUN)
    assert first is not None
    first.mkdir(parents=True)
    assert compiled_folder(RUN.model_copy(update={"repeat": 2, "seed": 2})) == first
    assert compiled_folder(RUN.model_copy(update={"topology": "1n1g"})) != first
    assert compiled_folder(RUN.model_copy(update={"device": "cuda"})) is None
    assert compiled_folder(RUN.model_copy(update={"system": "pytorch"})) is None
    assert first.exists()
    monkeypatch.setenv(CALL, "here 2 today")
    assert compiled_folder(RUN) != first
    assert not first.exists(), "an earlier call's is left"
    monkeypatch.delenv(CALL)
    assert compiled_folder(RUN) is None


def test_only_the_seed_may_differ_where_a_program_is_shared(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(COMPILED, "somewhere")
    program = compiled_before(Namespace(batch_size=2, seed=1), 0)
    assert compiled_before(Namespace(batch_size=2, seed=2), 0) == program
    assert compiled_before(Namespace(batch_size=4, seed=1), 0) != program
    assert compiled_before(Namespace(batch_size=2, seed=1), 1) != program
    monkeypatch.delenv(COMPILED)
    assert compiled_before(Namespace(batch_size=2, seed=1), 0) is None
