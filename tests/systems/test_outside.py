"""What others have written trains as ours does: torch's, torchvision's and transformers' models.

PyTorch's trainers are held to them here, and all other systems to PyTorch's in test_training.py.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from reperf.builds import LockBuild
from reperf.layout import ROOT
from reperf.systems import TRAINERS, load_systems
from reperf.systems.workloads import load_workloads

from tests.helpers.shapes import TINY_LLAMA
from tests.systems.trainer import losses, recipe_of, small

sys.path.append(str(ROOT / "benchmarks"))

from training import FIELDS, make_environment

TOLERANCE = {"alexnet": 5e-5}
"""By what part of it a loss may differ; 1e-5 for what is not here. AlexNet's few large maxima
magnify rounding errors, more or fewer by the kernels that a CPU takes: of 8 images of 64 pixels the
last losses came to 8e-4 on one CPU; of the shape here, on the same one, to 3e-6."""
CASES = {
    "resnet50": {},
    "vgg16": {"shape": {"image_size": 32}, "batch_size": 4},
    "alexnet": {"shape": {"image_size": 96}, "batch_size": 8},
    "bert-base": {},
    "bert-base at its own size": {"shape": {}, "batch_size": 2, "iterations": 2},
    "gpt2-124m": {},
    "gpt2-124m at its own size": {"shape": {"context": 128}, "batch_size": 1, "iterations": 2},
    "llama3-8b": {},
    "llama3-8b with tied embeddings": {"shape": TINY_LLAMA | {"embeddings": 1, "stretch": 1}},
    "transformer": {},
    "transformer at its own size": {"shape": {}, "batch_size": 64, "iterations": 2},
}

CLOSE_TO_TORCHAO = 1e-4

# An environment of its own takes minutes.
pytestmark = [pytest.mark.xdist_group("outside"), pytest.mark.weekly]


def asked(case: str) -> dict[str, object]:
    workload = case.split(" ", maxsplit=1)[0]
    changes = {"topology": "1n1g", "iterations": 8, "workload": workload, **CASES[case]}
    shape = small("pytorch", **changes)["shape"]
    return changes | {"shape": load_workloads()[workload].shape_of(shape)}


@pytest.fixture(scope="module")
def outside(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., object]:
    """Run a program of this folder beside torchvision, transformers and torchao; what it prints."""
    packages = (*FIELDS["pytorch", "resnet50"].packages, *FIELDS["pytorch", "bert-base"].packages)
    wanted = tuple(one for one in packages if one.startswith(("torchvision==", "transformers==")))
    folder = tmp_path_factory.mktemp("outside") / "environment"
    build = LockBuild(load_systems()["pytorch"], "cpu")
    python = make_environment(folder, build, (*wanted, "torchao==0.18.0"))

    def said_by(program: str, *arguments: str) -> object:
        said = subprocess.run(
            [python, str(Path(__file__).with_name(program)), *arguments],
            check=True,
            stdout=subprocess.PIPE,
            text=True,
            timeout=1200,
            env=os.environ | {"PYTHONPATH": f"{TRAINERS.parent}:{ROOT / 'benchmarks'}"},
        )
        return json.loads(said.stdout.splitlines()[-1])

    return said_by


@pytest.fixture(scope="module")
def of_others(outside, trainer_of) -> dict[str, list[float]]:
    """The losses of each case."""
    flags = (json.dumps(trainer_of("pytorch").flags(**asked(case))) for case in CASES)
    return dict(zip(CASES, outside("outside.py", *flags), strict=True))


@pytest.mark.parametrize("case", CASES)
def test_a_model_of_others_has_the_same_losses(case, of_others, trainer_of):
    trainer, changes = trainer_of("pytorch"), asked(case)
    recipe = recipe_of(changes["workload"]).__name__
    undropped = f"import importlib; importlib.import_module({recipe!r}).DROPOUT = 0.0"
    own = losses(trainer.said(*trainer.program(before=undropped, **changes)), 0)
    assert own == pytest.approx(of_others[case], rel=TOLERANCE.get(case, 1e-5))
    assert len(own) == changes["iterations"]
    assert own[-1] < own[0] - 0.2


def test_layers_in_float8_compute_what_torchaos_do(outside):
    """Only the order of sums differs. A scale whose last bit is off gives 2e-2."""
    found = outside("float8_of_torchao.py")
    assert len(found) == 2 * 4
    assert max(max(each) for each in found.values()) < CLOSE_TO_TORCHAO, found
