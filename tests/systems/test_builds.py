"""What each environment says of itself from inside."""

import json

from reperf.systems import load_systems


def test_an_environment_says_from_inside_what_it_holds(trainer_of, system):
    trainer = trainer_of(system)
    name = load_systems()[system].framework
    answer = trainer.python("-m", "trainers.inside", name)
    assert answer.returncode == 0, answer.stdout
    said = json.loads(answer.stdout.splitlines()[-1])
    built = json.loads((trainer.environment / "environment.json").read_text())
    assert said["python"] == built["python"]
    assert said["packages"].items() >= normal(built["packages"]).items()
    assert said["overlay"] == {}
    framework = said["framework"]
    assert framework["import_trouble"] is None
    assert framework["version"] in said["packages"].values()
    if name == "oneflow":  # whose one build is for GPUs
        assert (framework["cuda"], framework["nccl"]) == ("11.7", "2.12.10")
    else:
        assert framework["cuda"] is None
    assert framework["architectures"] == []


def normal(packages):
    """Packages by the names that indexes compare."""
    return {name.lower().replace("_", "-").replace(".", "-"): one for name, one in packages.items()}
