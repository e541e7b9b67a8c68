"""The workloads: what their files say, and what their recipes make of a shape."""

import sys
from pathlib import Path

import pytest
from reperf.config import load_report
from reperf.errors import ReperfError
from reperf.systems import load_systems, workloads
from reperf.systems.workloads import Workload, load_workloads
from trainers.contract.recipe import INTERFACE

from tests.helpers.refusal import refused_in_one_line
from tests.helpers.small_benchmark import SMALL

WRITTEN = """\
{title: A, data: images, units: [images], parameters: 9, shape: {size: {about: x, default: 4}}}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder of workloads in place of ours."""
    monkeypatch.setattr(workloads, "WORKLOADS", tmp_path)
    return tmp_path


def load_from(folder: Path, text: str) -> dict[str, Workload]:
    (folder / "mine.yaml").write_text(text)
    return load_workloads.__wrapped__()


@pytest.mark.parametrize("workload", load_workloads().values(), ids=lambda workload: workload.id)
def test_numbers_of_parameters_and_operations_that_the_recipe_does_not_make_are_refused(
    workload: Workload,
):
    assert workload.shape_of({}) == workload.default_shape
    written, has = workload.model_dump(), workload.parameters
    wrong = {"parameters": (has, written | {"parameters": has + 1})}
    if workload.flops:
        more = written["flops"] | {"sample": workload.flops.sample + 1}
        wrong["flops.sample"] = int(workload.flops.sample), written | {"flops": more}
    for key, (right, values) in wrong.items():
        with refused_in_one_line(
            f"{workload.file}: {key}: got {right + 1}; allowed: {right}, as many as "
            f"{workload.recipe_file.name} makes at the default shape"
        ):
            Workload(**values).shape_of({})


LARGE = {"layers": 24, "hidden": 1024, "heads": 16, "intermediate": 4096}
LAYER = 6 * 1024 * (12 * 768**2 + 1024 * 768)
"""FLOPs of a layer of GPT-2, with the causal half of attention behind it."""


@pytest.mark.parametrize(
    ("workload", "shape", "count"),
    [
        # BERT-large's were counted by torch, GPT-2's too, with attention whole.
        ("gpt2-124m", {}, 816_962_863_104),
        ("gpt2-124m", {"layers": 11}, 816_962_863_104 - LAYER),
        ("llama3-1b", {}, 73_933_567_033_344),
        ("llama3-8b", {}, 421_645_529_382_912),
        ("llama3-70b", {}, 3_680_031_058_427_904),
        ("bert-base", LARGE, 240642748416),
    ],
)
def test_the_operations_of_a_shape_are_its_recipes(workload, shape, count):
    known = load_workloads()[workload]
    assert known.flops_at(known.shape_of(shape)) == count


def test_a_small_shape_has_its_own_count():
    fewer = 4096 * (512 * 7 * 7 - 512)  # weights of the first linear layer
    assert load_workloads()["vgg16"].parameters_of({"image_size": 32}) == 138_357_544 - fewer
    assert load_workloads()["word2vec"].flops_at({}) is None


def test_a_workload_without_a_recipe_has_no_count_and_any_shape_in_bounds(folder: Path):
    workload = load_from(folder, WRITTEN.replace("parameters: 9, ", ""))["mine"]
    assert workload.shape_of({"size": 7}) == {"size": 7}
    assert workload.parameters_of({"size": 4}) is None


def test_bert_large_differs_from_base_in_its_default_shape_alone():
    """So that it is trained by the same code, in all systems that have both."""
    base, large = (load_workloads()[name] for name in ("bert-base", "bert-large"))
    assert large.recipe_file == base.recipe_file
    assert large.shape_of(base.default_shape) == base.default_shape
    assert large.parameters_of(base.default_shape) == base.parameters
    assert large.title_at(base.default_shape).startswith(f"{base.family} (12 layers, hidden 768")
    both = [one for one in load_systems().values() if large.id in one.workloads]
    assert {"paddlepaddle", "ngc-tensorflow1", "pytorch"} <= {one.id for one in both}
    for system in both:
        assert system.workloads[large.id] == system.workloads[base.id]
        assert system.code(large.id) == system.code(base.id)


@pytest.mark.parametrize(
    ("code", "fault"),
    [
        ("", f"{INTERFACE[0]} is missing; a recipe has {', '.join(INTERFACE)}"),
        (
            "\n".join(f"{name} = None" for name in INTERFACE if name != "start"),
            "start is missing; a recipe has",
        ),
        ("import no_such_module", "cannot be imported: ModuleNotFoundError: No module named"),
        ("def", "cannot be imported: SyntaxError: invalid syntax"),
    ],
)
def test_a_recipe_that_lacks_a_part_is_refused_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str, fault: str
):
    recipes = tmp_path / "trainers/recipes"
    recipes.mkdir(parents=True)
    (recipes / "mine.py").write_text(code)
    (tmp_path / "workloads").mkdir()
    monkeypatch.setattr(workloads, "WORKLOADS", tmp_path / "workloads")
    monkeypatch.setattr(sys.modules["trainers.recipes"], "__path__", [str(recipes)])
    monkeypatch.delitem(sys.modules, "trainers.recipes.mine", raising=False)
    workload = load_from(tmp_path / "workloads", WRITTEN)["mine"]
    with refused_in_one_line(f"{recipes / 'mine.py'}: {fault}"):
        workload.shape_of({})


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("{title: A}", "data: is missing"),
        (WRITTEN.replace("images,", "films,"), "data: got 'films'; allowed: 'clicks', "),
        (WRITTEN.replace("title: A", "title: A, unit: films"), "unit: got 'films'; allowed: "),
        (WRITTEN.replace("[images]", "[]"), "units: allowed: at least one item"),
        (WRITTEN.replace("title: A", "title: A, speed: 1"), "speed: unknown key; allowed: data, "),
        (WRITTEN.replace("default: 4", "default: 0"), "shape.size: default is 0; allowed: 1 to"),
        (WRITTEN.replace("parameters: 9", "parameters: many"), "parameters: got 'many'; allowed:"),
        ("", "got nothing; allowed: a mapping of keys to values"),
    ],
)
def test_a_file_that_says_it_wrong_is_named_in_one_line(folder: Path, text: str, fault: str):
    with refused_in_one_line(f"{folder}/mine.yaml: {fault}"):
        load_from(folder, text)


def test_images_too_small_for_the_model_are_refused_by_the_recipe():
    small = SMALL["suites"][0] | {"workload": "alexnet", "shape": {"image_size": 62}}
    refused = r"suites.small.shape: .*got 62; allowed: a whole .*, 63 to"
    with pytest.raises(ReperfError, match=refused):
        load_report({"suites": [small]})
