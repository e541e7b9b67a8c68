"""Every benchmark runs, at sizes that say nothing of speed, and prints what it is for."""

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
from reperf.builds import LockBuild
from reperf.systems import load_systems

from tests.helpers.refusal import cannot_run
from tests.helpers.shapes import TINY_BERT
from tests.helpers.small_benchmark import ROOT

sys.path.append(str(ROOT / "benchmarks"))

from bare import Job, jobs_of, write_bare

from tests.slurm.cluster import why_not


class Brief(NamedTuple):
    """A benchmark at its smallest.

    Attributes:
        program: of benchmarks/.
        arguments: that make it small.
        prints: a pattern of a line that it prints; its group is a ratio to a peer, or what else
            the benchmark is for.
        systems: whose environments it needs.
    """

    program: str
    arguments: str
    prints: str
    systems: tuple[str, ...] = ()


NUMBER = r"(\d+\.\d+)"
TRAINED = "--rounds=1 --warmup=1 --iterations=1 --batch-size=2 --shape"
BERT = " ".join(f"{name}={number}" for name, number in TINY_BERT.items())
LOADED = "--rounds=1 --images=300 --threads=1 --batches=1"
TEXT = "--rounds=1 --copies=1 --memory 1 2"
TENSORFLOW = LockBuild(load_systems()["tensorflow2"], "cpu").python
OURS_BESIDE = rf"\n{{}} +\S+ +\S+ +{NUMBER}"

BRIEF = [
    Brief("convert.py", "--rounds=1 --images=300", rf"reperf tfrecord, 2 workers .* {NUMBER}"),
    Brief("convert_memory.py", "--images 300 400", rf"400 .* MiB +{NUMBER} MiB"),
    Brief("convert_text.py", TEXT, rf"reperf tfrecord, 2 workers .* {NUMBER}"),
    Brief(
        "logs.py",
        "--gigabytes=0.0003 --megabytes-each=0.1 --short=2 --records=500",
        rf"--window all, 500 records, .* {NUMBER} s, .* measured 20:500",
    ),
    Brief("overhead.py", "--only plan --rounds=1 --repeats=1", rf"nothing there: .* {NUMBER}"),
    Brief("overhead.py", "--only again --rounds=1 --runs=1", rf", finished: .* {NUMBER}"),
    Brief("overhead.py", "--only local --runs=1", rf"local .* {NUMBER} CPU-s a run"),
    Brief(
        "loading.py",
        f"{LOADED} --systems pytorch --beside decoder",
        rf"pytorch .* {NUMBER}",
        ("pytorch",),
    ),
    Brief(
        "training.py",
        f"--workload=bert-base --peers transformers --earlier=. {TRAINED} {BERT}",
        rf"(?s){OURS_BESIDE.format('transformers')}.*\nequal to the earlier losses",
        ("pytorch",),
    ),
]
"""With what `make test` builds."""
WITH_ALL = [
    Brief(
        "convert.py",
        f"--rounds=1 --images=300 --tensorflow={TENSORFLOW}",
        rf"TensorFlow's TFRecordWriter .* {NUMBER}",
        ("tensorflow2",),
    ),
    Brief(
        "convert_text.py",
        f"{TEXT} --tensorflow={TENSORFLOW}",
        rf"plain Python, TFRecordWriter .* {NUMBER}",
        ("tensorflow2",),
    ),
    Brief(
        "pipelines.py",
        "--rounds=1 --warmup=1 --iterations=1 --batch-size=1",
        rf"stages 1 \+ 1 over data parallel, .* {NUMBER}",
        ("pipedream",),
    ),
    Brief(
        "parameter_servers.py",
        "--systems tensorflow-ps --rounds=1 --warmup=5 --iterations=300 --batch-size=50 "
        "--shape rows=1000 embedding=4 hidden=32",
        rf"\ntensorflow-ps\+v1 +\d+ +{NUMBER}",
        ("tensorflow-ps", "pytorch"),
    ),
    Brief("loading.py", LOADED, rf"oneflow .* {NUMBER}", tuple(load_systems())),
    Brief(
        "training.py",
        # Of the two that are compiled, one: it takes a minute.
        f"--workload=resnet50 --peers torchvision timm milabench {TRAINED} image_size=32",
        OURS_BESIDE.format("milabench"),
        ("pytorch",),
    ),
    Brief(
        "training.py",
        f"--system=jax --workload=bert-base {TRAINED} {BERT}",
        OURS_BESIDE.format("transformers"),
        ("jax",),
    ),
    Brief(
        "training.py",
        f"--system=jax --workload=resnet50 {TRAINED} image_size=32",
        OURS_BESIDE.format("flax"),
        ("jax",),
    ),
]
"""With the environments that `make test-all` builds."""
ON_SLURM = Brief("overhead.py", "--only slurm --runs=1", rf"Slurm .* {NUMBER} CPU-s a run")


def named(brief: Brief) -> str:
    return f"{brief.program} {brief.arguments}".split(" --shape")[0]


def check(brief: Brief) -> None:
    answer = subprocess.run(
        [sys.executable, f"benchmarks/{brief.program}", *brief.arguments.split()],
        cwd=ROOT,
        check=False,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert answer.returncode == 0, answer.stdout + answer.stderr
    found = re.search(brief.prints, answer.stdout)
    assert found and float(found[1]) > 0, answer.stdout


@pytest.mark.parametrize("brief", BRIEF, ids=named)
def test_a_benchmark_runs(brief, request):
    if brief.systems:
        request.getfixturevalue("environments")
    check(brief)


@pytest.mark.every_system
@pytest.mark.parametrize("brief", WITH_ALL, ids=named)
def test_a_benchmark_of_more_systems_runs(brief, built_environments: Callable[..., Path]):
    built_environments(*brief.systems)
    check(brief)


@pytest.mark.xdist_group("cluster")
def test_the_benchmark_on_slurm_runs():
    if reason := why_not():
        cannot_run(f"a Slurm cluster: {reason}")
    check(ON_SLURM)


def test_every_benchmark_is_among_them():
    readme = (ROOT / "benchmarks/README.md").read_text(encoding="utf-8")
    programs = re.findall(r"^python benchmarks/(\S+)", readme, re.MULTILINE)
    assert {*programs} == {brief.program for brief in (*BRIEF, *WITH_ALL, ON_SLURM)}


class TestABareSnakefile:
    JOBS = (
        Job("measure", ["1/run.json", "2/run.json", "settings"], ["table"]),
        *(
            Job("train", ["environment", f"{n}/plan"], [f"{n}/run.json", f"{n}/log"])
            for n in (1, 2)
        ),
        Job("build", ["lock"], ["environment"]),
        Job("all", ["table"], []),
    )

    def planned(self, folder: Path, finished: bool) -> list[Job]:
        write_bare(folder, self.JOBS, finished)
        return jobs_of(folder, ["snakemake"], dict(os.environ))

    def test_has_as_many_jobs_inputs_and_outputs(self, tmp_path):
        planned = self.planned(tmp_path / "bare", finished=False)
        sizes = sorted((len(job.inputs), len(job.outputs)) for job in planned)
        assert sizes == sorted((len(job.inputs), len(job.outputs)) for job in self.JOBS)
        assert len({job.rule for job in planned}) == 4

    def test_has_nothing_to_do_where_all_is_there(self, tmp_path):
        assert self.planned(tmp_path / "bare", finished=True) == []
