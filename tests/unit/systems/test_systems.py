"""The systems under test: what their folders say, and what they can train."""

import ast
import re
from pathlib import Path

import pytest
from reperf.builds import LockBuild
from reperf.systems import ROOT, SYSTEMS, TRAINERS, System, load_systems, load_workloads

from tests.helpers.refusal import refused_in_one_line


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An empty folder of systems."""
    return tmp_path / "workflow" / "systems"


def load_from(folder: Path, text: str) -> dict[str, System]:
    (folder / "mine").mkdir(parents=True)
    (folder / "mine" / "system.yaml").write_text(text)
    return load_systems(folder.parents[1])


def test_each_folder_is_a_system():
    folders = {path.parent.name for path in SYSTEMS.glob("*/system.yaml")}
    assert set(load_systems()) == folders
    assert {"oneflow", "pytorch", "ngc-tensorflow1"} <= folders


@pytest.mark.parametrize("system", load_systems().values(), ids=lambda system: system.id)
def test_what_is_built_is_complete(system: System):
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


@pytest.mark.parametrize("system", load_systems().values(), ids=lambda system: system.id)
def test_the_page_of_systems_names_each_with_its_variants(system: System):
    lines = (ROOT / "docs/systems.md").read_text(encoding="utf-8").splitlines()
    row = next(line for line in lines if line.startswith(f"| `{system.id}` |"))
    variants = set(re.findall("`([^`]+)`", row.rpartition(" | ")[2]))
    assert variants == set(system.variants)


def code_without_comments(path: Path) -> str:
    """A file's code; docstrings and comments may give examples."""
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".py":
        return re.sub(r"#.*", "", text)
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            node.body = [part for part in node.body if not is_text(part)] or [ast.Pass()]
    return ast.unparse(tree)


def is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def test_no_rule_and_no_library_module_names_a_system():
    workflow = ROOT / "workflow"
    # Formats and published tables are of what these systems printed and reached once.
    of_the_past = {workflow / "reperf/logs", workflow / "reperf/published"}
    suffixes = {".py", ".smk", ".j2"}
    files = [ROOT / "Snakefile", *(path for path in workflow.rglob("*") if path.suffix in suffixes)]
    looked_at = [
        path for path in files if not {SYSTEMS, TRAINERS, *of_the_past} & set(path.parents)
    ]
    assert len(looked_at) > 80
    name = re.compile(rf"(?<![\w-])({'|'.join(map(re.escape, load_systems()))})(?![\w-])")
    named = {str(path): name.findall(code_without_comments(path)) for path in looked_at}
    assert not {path: found for path, found in named.items() if found}


def test_a_system_shares_the_environment_of_one_that_exists():
    for one in load_systems().values():
        if one.shares:
            assert load_systems()[one.shares].shares is None


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_amp_is_what_it_is_on_the_device_and_a_workload_may_have_other_precisions(folder, device):
    amp, other = ("fp16", "bf16") if device == "cuda" else ("bf16", "fp16")
    system = load_from(
        folder,
        "{title: A, framework: torch, about: x, processors: {bf16: [avx512bw]},"
        f" precisions: {{{device}: [fp32, {amp}]}}, workloads: {{resnet50: {{model: a.B}},"
        f" vgg16: {{model: a.B, precisions: {{{device}: [{other}]}}}},"
        f" alexnet: {{model: a.B, precisions: {{{device}: [amp]}}}}}}}}",  # of earlier versions
    )["mine"]
    lacks = f"A has no {{}} training on {device}"
    for workload, can in (("resnet50", ("fp32", amp, "amp")), ("alexnet", (amp, "amp"))):
        for precision in ("fp32", "tf32", "fp16", "bf16", "amp"):
            why = None if precision in can else lacks.format(precision)
            assert system.why_not(workload, precision, device) == why
    assert system.why_not("vgg16", other, device) is None
    assert system.why_not("vgg16", "amp", device) == lacks.format("amp")
    for precision in ("bf16", "amp"):
        why = f"torch needs a CPU with avx512bw for {precision}"
        assert system.why_not_on_processor(precision, {"avx2"}) == why
    assert system.why_not_on_processor("fp32", {"avx2"}) is None


def test_why_a_system_cannot_train_is_said_in_words(folder: Path):
    text = (
        "{title: A, framework: torch, about: x, workloads: {resnet50: {precisions: {cpu: [fp32]}}}}"
    )
    system = load_from(folder, text)["mine"]
    assert system.why_not("resnet50", "fp32", "cpu") == "A has no program for resnet50"
    (folder / "mine" / "resnet50.py").touch()
    assert system.why_not("resnet50", "fp32", "cpu") is None
    assert system.why_not("bert-base", "fp32", "cpu") == "A has no program for bert-base"
    assert system.why_not("resnet50", "amp", "cpu") == "A has no amp training on cpu"
    assert system.why_not("resnet50", "fp32", "cuda") == "A has no fp32 training on cuda"
    stages = system.why_not("resnet50", "fp32", "cpu", parallel=["pipeline"], pipeline=[1, 1])
    assert stages == "A has no pipeline-parallel training of resnet50"
    assert system.why_not("resnet50", "fp32", "cpu", servers=True) == "A has no parameter servers"


@pytest.mark.parametrize(
    ("more", "why"), [("", "A has no gradient accumulation"), (", accumulates: true", None)]
)
def test_a_system_that_adds_up_no_gradients_has_no_accumulation(folder: Path, more, why):
    text = "{title: A, framework: t, about: x, precisions: {cpu: [fp32]},"
    system = load_from(folder, text + " workloads: {resnet50: {model: a.B}}" + more + "}")["mine"]
    assert system.why_not("resnet50", "fp32", "cpu", accumulation=2) == why
    assert system.why_not("resnet50", "fp32", "cpu", accumulation=1) is None


def test_what_a_server_runs_decides_how_its_system_trains(folder: Path):
    text = (
        "{title: A, framework: torch, about: x, launch: [a], serve: [-m, trainers.serving], "
        "workloads: {resnet50: {precisions: {cpu: [fp32]}}}}"
    )
    system = load_from(folder, text)["mine"]
    (folder / "mine" / "resnet50.py").write_text("")
    trainers = folder.parent / "trainers"
    trainers.mkdir()
    files = [trainers / "__init__.py", trainers / "serving.py", trainers / "serve.py"]
    for file in files:
        file.write_text("")
    assert {*system.code("resnet50")} == {folder / "mine" / "resnet50.py", *files}
    own = folder / "mine" / "resnet50.server.py"
    own.write_text("")
    system._code.clear()
    assert own in system.code("resnet50")
    assert files[-1] not in system.code("resnet50")


def test_a_variant_that_a_device_does_not_have_is_unsupported_there(folder: Path):
    text = (
        "{title: A, framework: torch, about: x, workloads: {resnet50:"
        " {precisions: {cpu: [fp32], cuda: [fp32]}, variants: [quick, fused]}},"
        " variants: {quick: {about: x, flags: [--quick]},"
        " fused: {about: x, flags: [--fused], devices: [cuda]}}}"
    )
    system = load_from(folder, text)["mine"]
    (folder / "mine" / "resnet50.py").touch()
    assert system.why_not("resnet50", "fp32", "cpu", "quick") is None
    assert system.why_not("resnet50", "fp32", "cuda", "fused") is None
    for named in ("fused", "quick+fused"):
        assert system.why_not("resnet50", "fp32", "cpu", named) == "A has no fused on cpu"
    assert [one.flags for one in system.varied("quick+fused")] == [("--quick",), ("--fused",)]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("{title: A, framework: torch}", "about: is missing"),
        (
            "{title: A, framework: t, about: x, workloads: {resnet50: {precisions: {cpu: [fp32]}, "
            "variants: [a]}}, variants: {a: {about: x}}}",
            "variants.a: changes nothing; allowed: flags, environment, unsupported, or workload",
        ),
        (
            "{title: A, framework: t, about: x, workloads: {resnet50: {variants: [a, b]}}, "
            "variants: {a: {about: x, flags: [-x]}, b: {about: y, flags: [-x]}}}",
            "variants.b: has the flags and environment of a; allowed: each variant once",
        ),
        (
            "{title: A, framework: t, about: x, workloads: {resnet50: {variants: [a]}}, "
            "variants: {a: {about: x, flags: [-x], excludes: [b]}}}",
            "variants.a.excludes: got 'b'; allowed: none",
        ),
        (
            "{title: A, framework: t, about: x, workloads: {bert: {}}}",
            f"workloads: got 'bert'; allowed: {', '.join(load_workloads())}",
        ),
        (
            "{title: A, framework: t, about: x, workloads: {resnet50: {variants: [a]}}}",
            "workloads.resnet50.variants: got 'a'; allowed: none",
        ),
        (
            "{title: A, framework: t, about: x, variants: {a: {about: x, flags: [-x]}}}",
            "variants.a: no workload names it; allowed: one that a workload names",
        ),
        (
            "{title: A, framework: t, about: x, variants: {../a: {about: x, flags: [-x]}}}",
            "variants.../a: got '../a'; allowed: text that matches",
        ),
        ("title: A\nabout: x\ntitle: B", "'title' appears twice, in lines 1 and 3; allowed: each"),
        ("{title: A, framework: t, about: x, speed: 9}", "speed: unknown key; allowed: about, "),
        (
            "{title: A, framework: t, about: x, workloads: {vgg16: {precisions: {tpu: [fp32]}}}}",
            "workloads.vgg16.precisions.tpu",
        ),
        ("{title: [A], framework: t, about: x}", "title: got a list; allowed: text"),
        ("", "got nothing; allowed: a mapping of keys to values"),
        ("[a]", "got a list; allowed: a mapping of keys to values"),
        ("{title: A, title", "is not YAML"),
    ],
)
def test_a_folder_that_says_it_wrong_is_named_in_one_line(folder: Path, text: str, fault: str):
    with refused_in_one_line(f"{folder}/mine/system.yaml: {fault}"):
        load_from(folder, text)
