"""What each environment says of itself from inside."""

import json

from reperf.builds import LockBuild
from reperf.systems import load_systems

from tests.systems.cases import each


@each(lambda system: LockBuild(system, "cpu").folder, weekly=lambda name: name != "oneflow")
def test_an_environment_says_from_inside_what_it_holds(system, trainer_of):
    trainer = trainer_of(system)
    name = load_systems()[system].framework
    said = json.loads(trainer.said("-m", "trainers.inside", name).splitlines()[-1])
    built = json.loads((trainer.environment / "environment.json").read_text())
    assert said["python"] == built["python"]
    assert said["packages"].items() >= normal(built["packages"]).items()
    assert said["overlay"] == {}
    assert said["import_trouble"] is None
    assert said["framework"] in said["packages"].values()
    # OneFlow's one build is for GPUs.
    of_gpus = ("11.7", "2.12.10") if name == "oneflow" else (None, None)
    assert (said["cuda"], said["nccl"]) == of_gpus
    assert said["architectures"] == []


def normal(packages):
    """Packages by the names that indexes compare."""
    return {name.lower().replace("_", "-").replace(".", "-"): one for name, one in packages.items()}
