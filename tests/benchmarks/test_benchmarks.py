"""Every benchmark runs, at sizes that say nothing of speed, and prints what it is for."""

import re
import runpy
import subprocess
import sys

import pytest
from reperf.builds import LockBuild
from reperf.systems import load_systems

from tests.helpers.refusal import cannot_run
from tests.helpers.shapes import TINY_BERT, TINY_GPT2, TINY_LLAMA
from tests.helpers.small_benchmark import ROOT
from tests.slurm.cluster import why_not

README = (ROOT / "benchmarks/README.md").read_text(encoding="utf-8")
ASKED = dict(re.findall(r"^python benchmarks/(\S+)(.*)$", README, re.MULTILINE))
"""Program -> what README says that it can be asked for."""

NUMBER = r"(\d+\.\d+)"
TRAINED = "--rounds=1 --warmup=1 --iterations=1 --batch-size=2 --shape"
BERT, GPT2, LLAMA = (
    f"{TRAINED} {' '.join(f'{name}={number}' for name, number in shape.items())}"
    for shape in (TINY_BERT, TINY_GPT2, TINY_LLAMA)
)
RESNET = f"{TRAINED} image_size=32"
LOADED = "--rounds=1 --images=300 --threads=1 --batches=1"
TEXT = "--rounds=1 --copies=1 --memory 1 2"
TENSORFLOW = LockBuild(load_systems()["tensorflow2"], "cpu").python
OURS_BESIDE = rf"\n{{}} +\S+ +\S+ +{NUMBER}"

# A program and the arguments that make it small; a pattern of what it prints, whose group is a
# ratio to a peer, or what else the benchmark is for; the systems whose environments it needs.
BRIEF = [
    ("comparing.py", "--matrices=2", rf"0.3 % .* slower {NUMBER}", []),
    ("convert.py", "--rounds=1 --images=300", rf"reperf tfrecord, 2 workers .* {NUMBER}", []),
    ("convert_memory.py", "--images 300 400", rf"400 .* MiB +{NUMBER} MiB", []),
    ("convert_text.py", TEXT, rf"reperf tfrecord, 2 workers .* {NUMBER}", []),
    (
        "logs.py",
        "--gigabytes=0.0003 --megabytes-each=0.1 --short=2 --records=500",
        rf"--window all, 500 records, .* {NUMBER} s, .* measured 20:500",
        [],
    ),
    ("overhead.py", "--only plan --rounds=1 --repeats=1", rf"nothing there: .* {NUMBER}", []),
    ("overhead.py", "--only again --rounds=1 --runs=1", rf", finished: .* {NUMBER}", []),
    ("overhead.py", "--only local --runs=1", rf"local .* {NUMBER} CPU-s a run", []),
    (
        "loading.py",
        f"{LOADED} --systems pytorch --beside decoder",
        rf"pytorch .* {NUMBER}",
        ["pytorch"],
    ),
    (
        "surveying.py",
        "--surveys=2 --nodes 4 --runs 3",
        rf"4 nodes,  3 runs, between {NUMBER} %, normal \| +0 ",
        [],
    ),
    (
        "training.py",
        f"--workload=bert-base --peers transformers --earlier=. {BERT}",
        rf"(?s){OURS_BESIDE.format('transformers')}.*\nequal to the earlier losses",
        ["pytorch"],
    ),
    (
        "convert.py",
        f"--rounds=1 --images=300 --tensorflow={TENSORFLOW}",
        rf"TensorFlow's TFRecordWriter .* {NUMBER}",
        ["tensorflow2"],
    ),
    (
        "convert_text.py",
        f"{TEXT} --tensorflow={TENSORFLOW}",
        rf"plain Python, TFRecordWriter .* {NUMBER}",
        ["tensorflow2"],
    ),
    (
        "pipelines.py",
        "--rounds=1 --warmup=1 --iterations=1 --batch-size=1",
        rf"stages 1 \+ 1 over data parallel, .* {NUMBER}",
        ["pipedream"],
    ),
    (
        "parameter_servers.py",
        "--systems tensorflow-ps --rounds=1 --warmup=5 --iterations=300 --batch-size=50 "
        "--shape rows=1000 embedding=4 hidden=32",
        rf"\ntensorflow-ps\+v1 +\d+ +{NUMBER}",
        ["tensorflow-ps", "pytorch"],
    ),
    ("loading.py", LOADED, rf"oneflow .* {NUMBER}", [*load_systems()]),
    (
        "training.py",
        # Of the two that are compiled, one: it takes a minute.
        f"--workload=resnet50 --peers torchvision timm milabench {RESNET}",
        OURS_BESIDE.format("milabench"),
        ["pytorch"],
    ),
    (
        "training.py",
        f"--system=jax --workload=bert-base {BERT}",
        OURS_BESIDE.format("transformers"),
        ["jax"],
    ),
    *(
        (
            "training.py",
            f"--system={system} --workload={small}",
            OURS_BESIDE.format(peer),
            [system],
        )
        for system, small, peer in (
            ("pytorch", f"gpt2-124m {GPT2}", "transformers"),
            ("pytorch", f"llama3-8b {LLAMA}", "torchtitan"),
            ("jax", f"llama3-8b {LLAMA}", "transformers"),
        )
    ),
    (
        "training.py",
        f"--system=jax --workload=resnet50 {RESNET}",
        OURS_BESIDE.format("flax"),
        ["jax"],
    ),
]
ON_SLURM = ("overhead.py", "--only slurm --runs=1", rf"Slurm .* {NUMBER} CPU-s a run")


def check(program: str, arguments: str, prints: str) -> None:
    answer = subprocess.run(
        [sys.executable, f"benchmarks/{program}", *arguments.split()],
        cwd=ROOT,
        check=False,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert answer.returncode == 0, answer.stdout + answer.stderr
    found = re.search(prints, answer.stdout)
    assert found and float(found[1]) > 0, answer.stdout


def named(brief: tuple) -> str:
    return f"{brief[0]} {brief[1]}".split(" --shape")[0]


@pytest.mark.weekly
@pytest.mark.parametrize("brief", BRIEF, ids=named)
def test_a_benchmark_runs(brief, built_environments):
    *asked, systems = brief
    if systems:
        built_environments(*systems)
    check(*asked)


@pytest.mark.weekly
@pytest.mark.cluster
@pytest.mark.xdist_group("cluster")
def test_the_benchmark_on_slurm_runs():
    if reason := why_not():
        cannot_run(f"a Slurm cluster: {reason}")
    check(*ON_SLURM)


def test_every_benchmark_is_among_them():
    assert {*ASKED} == {program for program, *_ in (*BRIEF, ON_SLURM)}


@pytest.mark.parametrize("program", ASKED)
def test_a_benchmark_helps_with_what_can_be_asked_of_it(program, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", [program, "--help"])
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    with pytest.raises(SystemExit) as end:
        runpy.run_path(str(ROOT / "benchmarks" / program), run_name="__main__")
    assert end.value.code == 0
    helps = capsys.readouterr().out
    for flag in re.findall(r"--[a-z-]+", ASKED[program]):
        assert flag in helps
