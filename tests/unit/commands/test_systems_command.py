"""`reperf systems`: what trains what, and what is ready here."""

import json

import pytest
from reperf import machine
from reperf.cli import main
from reperf.host import Gpu

V100 = Gpu(name="Tesla V100", uuid="GPU-0", memory_bytes=16 << 30, capability="7.0")
FLAGS = frozenset({"avx2"})


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    """A machine whose CPU lacks AVX-512, and a folder in which nothing is built."""
    host = machine.describe_host().model_copy(update={"gpus": (), "driver": None})
    monkeypatch.setattr(machine, "describe_host", lambda: host)
    monkeypatch.setattr(machine, "cpu_flags", lambda: FLAGS)
    monkeypatch.chdir(tmp_path)
    return host


def shown(capsys, *arguments: str) -> str:
    assert main(["systems", *arguments]) == 0
    return capsys.readouterr().out


def test_the_systems_of_a_workload_have_their_precisions_and_the_gpus_of_their_builds(capsys):
    head, *lines = shown(capsys, "gpt2-124m").splitlines()
    assert head.split() == ["system", "trains", "on", "CPUs", "on", "GPUs", "builds"]
    (jax,) = (line for line in lines if line.startswith("jax"))
    assert jax.split()[1:8] == ["gpt2-124m", "fp32", "bf16", "fp32", "tf32", "fp16", "bf16"]
    assert jax.endswith("cpu lock: not built")
    assert any("cuda lock: not built; GPUs 7.5 and later, driver 580." in line for line in lines)
    assert not any(line.startswith("oneflow") for line in lines)
    assert [*json.loads(shown(capsys, "--json", "jax"))] == ["jax"]


def test_what_this_machine_lacks_is_left_out(capsys, monkeypatch, _here):
    assert json.loads(shown(capsys, "--json"))["mxnet"]["workloads"]["resnet50"]["cpu"] == ["fp32"]
    with_gpu = _here.model_copy(update={"gpus": (V100,), "driver": "535.1"})
    monkeypatch.setattr(machine, "describe_host", lambda: with_gpu)
    told = json.loads(shown(capsys, "--json", "resnet50"))["pytorch"]
    assert told["workloads"]["resnet50"]["cuda"] == ["fp32", "fp16"]
    why_not = {build["name"]: build["why_not"] for build in told["builds"]}
    assert "it holds code for compute capability" in why_not["cuda lock"]
    assert why_not["volta lock"] is None


def test_an_unknown_workload_is_one_line(capsys):
    assert main(["systems", "gpt2"]) == 1
    said = capsys.readouterr().err
    assert said.startswith("reperf: gpt2: no workload and no system; allowed: alexnet, ")
    assert "did you mean gpt2-124m?" in said
