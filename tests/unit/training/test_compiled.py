"""Which repeats share what a framework has compiled."""

from argparse import Namespace
from pathlib import Path

from reperf.building.work_folder import CALL
from reperf.config import load_report
from reperf.training.start import compiled_folder
from trainers.contract.compilers import COMPILED, compiled_before

from tests.helpers.small_benchmark import SMALL

RUN = load_report(SMALL).run("small", "pytorch", "1n2g", 1).model_copy(update={"system": "jax"})


def folder_of(**changes: object) -> Path | None:
    return compiled_folder(RUN.model_copy(update=changes))


def test_repeats_of_a_cell_and_a_call_share_a_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(CALL, "here 1 today")
    first = folder_of()
    first.mkdir(parents=True)
    assert folder_of(repeat=2, seed=2) == first
    assert folder_of(topology="1n1g") != first
    assert folder_of(device="cuda") is folder_of(system="pytorch") is None
    assert first.exists()
    monkeypatch.setenv(CALL, "here 2 today")
    assert folder_of() != first
    assert not first.exists(), "an earlier call's is left"
    monkeypatch.delenv(CALL)
    assert folder_of() is None


def test_only_the_seed_may_differ_where_a_program_is_shared(monkeypatch):
    monkeypatch.setenv(COMPILED, "somewhere")
    program = compiled_before(Namespace(batch_size=2, seed=1), 0)
    assert compiled_before(Namespace(batch_size=2, seed=2), 0) == program
    assert compiled_before(Namespace(batch_size=4, seed=1), 0) != program
    assert compiled_before(Namespace(batch_size=2, seed=1), 1) != program
    monkeypatch.delenv(COMPILED)
    assert compiled_before(Namespace(batch_size=2, seed=1), 0) is None
