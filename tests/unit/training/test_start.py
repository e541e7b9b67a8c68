"""How a launcher is started, by the command and the variables that the run's record holds."""

import os
import subprocess
import sys
import tempfile
from argparse import Namespace
from pathlib import Path

import pytest
from reperf.building.work_folder import CALL
from reperf.builds.engines import inside, variables_inside
from reperf.config import load_report
from reperf.errors import ReperfError
from reperf.plans.run_plan import RunPlan, plan_run
from reperf.systems import TRAINERS
from reperf.training.places import ThisMachine
from reperf.training.start import Start, compiled_folder, start_of
from trainers.contract.compilers import COMPILED, compiled_before

from tests.helpers.small_benchmark import SMALL

RUN = load_report(SMALL).run("small", "pytorch", "1n2g", 1)
JAX = RUN.model_copy(update={"system": "jax"})


def started(device: str, precision: str = "fp32", **variables: str) -> Start:
    """The start of a small run at a place that adds these variables."""
    run = RUN.model_copy(update={"device": device, "precision": precision})
    place = ThisMachine(run.model_copy(update={"device": "cpu"}))
    place.variables |= variables
    return start_of(plan_run(run, window=(1, 2), time_limit=60), place, ["resnet50.py"])


MODULE = TRAINERS / "module.py"
TF32 = ("NVIDIA_TF32_OVERRIDE", "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE")
OFF, ON = dict.fromkeys(TF32, "0"), dict.fromkeys(TF32, "1")


@pytest.mark.parametrize("users", [{}, OFF, ON])
@pytest.mark.parametrize(
    ("device", "precision", "given"),
    [("cuda", "fp32", OFF), ("cuda", "amp", OFF), ("cuda", "tf32", ON), ("cpu", "fp32", {})],
)
def test_float32_is_turned_into_tf32_only_where_it_is_asked_for(users, device, precision, given):
    """Whatever the user says; and the record says so."""
    start = started(device, precision, **users)
    assert given.items() <= start.trainers.environment.items()
    assert {name: start.variables[name] for name in TF32 if name in start.variables} == (
        given or users
    )


def test_what_the_shell_gives_the_ranks_is_noted_but_for_what_the_launch_sets(monkeypatch):
    monkeypatch.setenv("ONEDNN_MAX_CPU_ISA", "SSE41")
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    start = started("cpu")
    assert start.inherited["ONEDNN_MAX_CPU_ISA"] == "SSE41"
    assert start.trainers.environment["ONEDNN_MAX_CPU_ISA"] == "SSE41"
    assert not start.inherited.keys() & start.variables.keys()
    assert start.variables["OMP_NUM_THREADS"] == "1"


def test_a_trainer_that_is_not_the_planned_one_is_not_started():
    plan = plan_run(RUN, window=(1, 2), time_limit=60)
    pulled = RunPlan(**dict(plan) | {"trainer": "b" * 64})
    with pytest.raises(ReperfError, match=r"^workflow/\S+\.py: the trainer's code, .* not that of"):
        start_of(pulled, ThisMachine(RUN), ["resnet50.py"])


def test_what_a_run_leaves_among_temporary_files_goes_with_it(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    place = ThisMachine(RUN)
    start = start_of(plan_run(RUN, window=(1, 2), time_limit=60), place, ["resnet50.py"])
    leave = [sys.executable, "-c", "import tempfile; tempfile.mkdtemp()"]
    subprocess.run(leave, env=start.trainers.environment, check=True)
    (own,) = tmp_path.iterdir()
    assert any(own.iterdir())
    del place
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize("safe", [{}, {"PYTHONSAFEPATH": "1"}])
def test_a_file_in_the_work_folder_stands_for_no_module_of_the_standard_library(tmp_path, safe):
    (tmp_path / "timeit.py").write_text("raise SystemExit('the work folder came first')")
    command = started("cpu").trainers.words
    at = command.index("torch.distributed.run")
    assert command[at - 1] == os.path.relpath(MODULE)
    said = subprocess.run(
        [sys.executable, MODULE, "timeit", "-n1", "-r1", "import trainers.contract"],
        check=False,
        cwd=tmp_path,
        env={"PYTHONPATH": str(TRAINERS.parent), **safe},
        capture_output=True,
        text=True,
    )
    assert (said.returncode, said.stderr) == (0, "")
    assert "1 loop" in said.stdout


@pytest.mark.parametrize(
    ("own", "found"), [({"PYTHONPATH": "/own:/mx"}, ["/own", "/mx"]), ({}, [])]
)
def test_in_a_container_trainers_come_before_what_the_image_itself_finds(own, found):
    said = subprocess.run(
        inside(["sh", "-c", 'echo "$PYTHONPATH"; exit 3']),
        check=False,
        env={"PATH": os.defpath, **own, **variables_inside({"PYTHONPATH": str(TRAINERS.parent)})},
        capture_output=True,
        text=True,
    )
    assert said.stdout.strip().split(":") == [str(TRAINERS.parent), *found]
    assert said.returncode == 3


def test_repeats_of_a_cell_and_a_call_share_a_folder(tmp_path, monkeypatch):
    def folder_of(**changes: object) -> Path | None:
        return compiled_folder(JAX.model_copy(update=changes))

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
    def program(rank: int = 0, **changes: int) -> Path | None:
        return compiled_before(Namespace(**{"batch_size": 2, "seed": 1} | changes), rank)

    monkeypatch.setenv(COMPILED, "somewhere")
    assert program(seed=2) == program()
    assert program() not in (program(batch_size=4), program(1))
    monkeypatch.delenv(COMPILED)
    assert program() is None
