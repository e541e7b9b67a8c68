"""The systems under test: what their folders say, and what they can train."""

import re
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pytest
from reperf.building.code import _without_remarks
from reperf.builds import LockBuild
from reperf.layout import ROOT
from reperf.systems import SYSTEMS, TRAINERS, System, load_systems
from reperf.systems.workloads import load_workloads

from tests.helpers.other_root import forget, use_root
from tests.helpers.refusal import refused_in_one_line


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty folder of systems in place of ours."""
    use_root(monkeypatch, tmp_path)
    yield tmp_path / "workflow" / "systems"
    monkeypatch.undo()
    forget()


def load_from(folder: Path, text: str) -> System:
    (folder / "mine").mkdir(parents=True)
    (folder / "mine" / "system.yaml").write_text(text)
    return load_systems()["mine"]


def described(workloads: str, more: str = "") -> str:
    """A system.yaml with what every one must say."""
    return f"{{title: A, framework: t, about: x, workloads: {{{workloads}}}, {more}}}"


each_system = pytest.mark.parametrize("system", load_systems().values(), ids=lambda one: one.id)


@each_system
def test_what_is_built_is_complete(system: System):
    assert system.host.shares is None, "its environment is that of one that has its own"
    for device, ways in system.builds.items():
        assert ways
        locks = [LockBuild(system, name).lock for name in system.locks_for(device)]
        assert bool(locks) == ("lock" in ways)
        assert all(lock.exists() for lock in locks)
        assert "image" not in ways or system.image
    assert system.launch[0] == "-m"
    trained = [name for name in system.workloads if system.trains(name)]
    assert trained
    own = list(system.folder.glob("*.py"))
    assert {program.stem for program in own} <= set(trained)
    assert all(len(program.read_text().splitlines()) < 20 for program in own)
    for name in trained:
        needed = {load_workloads()[name].recipe_file, TRAINERS / "contract/steplog.py"}
        code = system.code(name)
        assert {system.trainer(name), *needed} <= set(code)
        assert all(file.is_relative_to(ROOT) for file in code)
        written = [TRAINERS.joinpath(*module.split(".")[1:]) for module in system.modules(name)]
        assert {module.with_suffix(".py") for module in written} <= set(code)


@each_system
def test_the_page_of_systems_names_each_with_its_variants(system: System):
    lines = (ROOT / "docs/systems.md").read_text(encoding="utf-8").splitlines()
    row = next(line for line in lines if line.startswith(f"| `{system.id}` |"))
    variants = set(re.findall("`([^`]+)`", row.rpartition(" | ")[2]))
    assert variants == set(system.variants)


@each_system
def test_each_variant_changes_what_a_workload_trains(system: System):
    changes = [one.flags for one in system.variants.values()]
    assert all(changes.count(one) == 1 for one in changes if one)
    for name, variant in system.variants.items():
        able = [can for can in system.workloads.values() if name in can.variants]
        idle = not (variant.flags or variant.unsupported)
        assert able
        assert not (idle and any(can.model or can.precisions for can in able))


def test_no_rule_and_no_library_module_names_a_system():
    """But in comments and docstrings, which may give examples."""
    workflow = ROOT / "workflow"
    # Formats and published tables are of what these systems printed and reached once.
    left_out = {SYSTEMS, TRAINERS, workflow / "reperf/logs", workflow / "reperf/published.py"}
    files = [ROOT / "Snakefile"]
    files += [file for end in ("py", "smk", "j2") for file in workflow.rglob(f"*.{end}")]
    looked_at = [file for file in files if not left_out & {file, *file.parents}]
    assert len(looked_at) > 80
    name = re.compile(rf"(?<![\w-])({'|'.join(map(re.escape, load_systems()))})(?![\w-])")
    # Twice: a comment may stand before a docstring.
    code = {file: _without_remarks(_without_remarks(file.read_text("utf-8"))) for file in looked_at}
    assert not {file: found for file, text in code.items() if (found := name.findall(text))}


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_amp_is_what_it_is_on_the_device_and_a_workload_may_have_other_precisions(folder, device):
    amp, other = ("fp16", "bf16") if device == "cuda" else ("bf16", "fp16")
    workloads = (
        f"resnet50: {{model: a.B}}, vgg16: {{model: a.B, precisions: {{{device}: [{other}]}}}}"
    )
    more = f"processors: {{bf16: [avx512bw]}}, precisions: {{{device}: [fp32, {amp}]}}"
    system = load_from(folder, described(workloads, more))
    can = {"resnet50": {"fp32", amp, "amp"}, "vgg16": {other}}
    for workload, precision in product(can, ("fp32", "tf32", "fp16", "bf16", "amp")):
        lacks = None if precision in can[workload] else f"A has no {precision} training on {device}"
        assert system.why_not(workload, precision, device) == lacks
    for precision in ("bf16", "amp"):
        why = f"t needs a CPU with avx512bw for {precision}"
        assert system.why_not_on_processor(precision, {"avx2"}) == why
    assert system.why_not_on_processor("fp32", {"avx2"}) is None


ABLE = """resnet50: {
  parallel: [data, tensor], variants: [quick, fused],
  precisions: {cpu: [fp32, tf32], cuda: [fp32]}, precisions_under: {tensor: [tf32]}}"""
VARIANTS = """variants: {
  quick: {about: x, flags: [--quick]}, fused: {about: x, flags: [--fused], devices: [cuda]}}"""
PIPELINE = {"parallel": ["pipeline"], "pipeline": [1, 1]}


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        ({}, None),
        ({"workload": "bert-base"}, "A has no program for bert-base"),
        ({"precision": "amp"}, "A has no amp training on cpu"),
        ({"device": "cuda", "precision": "tf32"}, "A has no tf32 training on cuda"),
        (PIPELINE, "A has no pipeline-parallel training of resnet50"),
        ({"parallel": ["tensor"]}, "A has no tensor-parallel training in fp32"),
        ({"parallel": ["tensor"], "precision": "tf32"}, None),
        ({"servers": True}, "A has no parameter servers"),
        ({"accumulation": 1}, None),
        ({"accumulation": 2}, "A has no gradient accumulation"),
        ({"variant": "quick"}, None),
        ({"variant": "fused", "device": "cuda"}, None),
        ({"variant": "fused"}, "A has no fused on cpu"),
        ({"variant": "quick+fused"}, "A has no fused on cpu"),
    ],
)
def test_why_a_system_cannot_train_is_said_in_words(folder: Path, asked: dict, why: str | None):
    system = load_from(folder, described(ABLE, VARIANTS))
    asked = {"workload": "resnet50", "precision": "fp32", "device": "cpu"} | asked
    if asked["workload"] == "resnet50":
        assert system.why_not(**asked) == "A has no program for resnet50"
    (folder / "mine" / "resnet50.py").touch()
    assert system.why_not(**asked) == why
    able = system.model_copy(update={"accumulates": True})
    assert able.why_not(**asked) == (None if "accumulation" in asked else why)
    assert [one.flags for one in system.varied("quick+fused")] == [("--quick",), ("--fused",)]


def test_what_a_server_runs_decides_how_its_system_trains(folder: Path):
    workloads = "resnet50: {precisions: {cpu: [fp32]}}"
    trainers, mine = folder.parent / "trainers", folder / "mine"
    files = [trainers / f"{name}.py" for name in ("__init__", "module", "serving", "serve")]
    own, program = mine / "resnet50.server.py", mine / "resnet50.py"
    system = load_from(folder, described(workloads, "launch: [a], serve: [-m, trainers.serving]"))
    trainers.mkdir()
    for file in (*files, program):
        file.write_text("")
    assert {*system.code("resnet50")} == {program, *files}
    own.write_text("")
    system._code.clear()
    assert {*system.code("resnet50")} == {program, own, *files[:-1]}


def test_what_a_framework_says_holds_for_its_systems_unless_they_say_otherwise(folder: Path):
    frameworks = folder.parent / "trainers" / "frameworks"
    (frameworks / "t").mkdir(parents=True)
    shared = "variants: {a: {about: x, flags: [-x]}, b: {about: x, flags: [-y]}}"
    (frameworks / "framework.yaml").write_text(shared)
    (frameworks / "t" / "framework.yaml").write_text("launch: [-m, theirs]")
    own = "variants: {a: {about: x, flags: [-z]}}"
    system = load_from(folder, described("resnet50: {variants: [a]}", own))
    assert system.launch == ("-m", "theirs")
    assert {name: one.flags for name, one in system.variants.items()} == {"a": ("-z",)}
    assert [file.parent.name for file in system.files] == ["mine", "t", "frameworks"]
    forget()
    (folder / "mine/system.yaml").write_text("{title: A, framework: t, about: x}")
    assert load_systems()["mine"].launch == ("-m", "theirs")
    forget()
    (frameworks / "framework.yaml").write_text(shared.replace("about: x, ", ""))
    with refused_in_one_line(f"{frameworks}/framework.yaml: variants.a.about: is missing"):
        load_systems()


A_LISTED = "resnet50: {variants: [a]}"


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("{title: A, framework: torch}", "about: is missing"),
        (
            described(A_LISTED, "variants: {a: {about: x, flags: [-x], excludes: [b]}}"),
            "variants.a.excludes: got 'b'; allowed: none",
        ),
        (
            described(
                A_LISTED, "variants: {a: {about: x, flags: [-x], excludes_under: {tensor: [b]}}}"
            ),
            "variants.a.excludes_under.tensor: got 'b'; allowed: none",
        ),
        (described("bert: {}"), f"workloads: got 'bert'; allowed: {', '.join(load_workloads())}"),
        (described(A_LISTED), "workloads.resnet50.variants: got 'a'; allowed: none"),
        (
            described("", "variants: {../a: {about: x, flags: [-x]}}"),
            "variants.../a: got '../a'; allowed: lowercase letters",
        ),
        (described("", "speed: 9"), "speed: unknown key; allowed: about, "),
        (described("vgg16: {precisions: {tpu: [fp32]}}"), "workloads.vgg16.precisions.tpu"),
        ("title: A\nabout: x\ntitle: B", "'title' appears twice, in lines 1 and 3; allowed: each"),
        ("{title: [A], framework: t, about: x}", "title: got a list; allowed: text"),
        ("", "got nothing; allowed: a mapping of keys to values"),
        ("[a]", "got a list; allowed: a mapping of keys to values"),
        ("{title: A, title", "is not YAML"),
    ],
)
def test_a_folder_that_says_it_wrong_is_named_in_one_line(folder: Path, text: str, fault: str):
    with refused_in_one_line(f"{folder}/mine/system.yaml: {fault}"):
        load_from(folder, text)
