"""Every framework trains over two nodes of a real cluster, by every launcher that it has."""

import re

import pytest
from reperf.systems import load_systems
from slurm_benchmark import SUITE, new_slurm_benchmark


@pytest.mark.every_system
def test_every_framework_trains_on_two_nodes(tmp_path, built_environments, cluster, begun):
    # Of systems that are started alike, and compute by one backend, one is enough.
    alike = {
        (one.launch, one.framework, one.backend): one.id
        for one in load_systems().values()
        if one.why_not("resnet50", "fp32", "cpu") is None
    }
    systems = list(alike.values())
    benchmark = new_slurm_benchmark(tmp_path / "benchmark", built_environments(*systems), cluster)
    benchmark.take_over(begun)
    suite = SUITE | {"input": "records", "systems": systems}
    benchmark.configure(suites=[suite], topologies=["2n2g"], repeats=1, time_limit=600)
    # One run at a time: four processes of each are more than enough for the machine's cores.
    answer = benchmark.snakemake("--jobs", "1", timeout=3600)
    assert answer.returncode == 0, answer.stdout[-5000:]
    for name in systems:
        log = benchmark.folder / f"results/runs/small/{name}/2n2g/1/train.log"
        places = dict(re.findall(r"rank (\d+): started on (\S+), process", log.read_text()))
        assert sorted(places) == ["0", "1", "2", "3"], name
        assert len(set(places.values())) == 2, name


@pytest.mark.every_system
def test_every_framework_with_servers_trains_on_four_nodes(
    tmp_path, built_environments, cluster, begun
):
    systems = [one.id for one in load_systems().values() if one.serve]
    benchmark = new_slurm_benchmark(tmp_path / "benchmark", built_environments(*systems), cluster)
    benchmark.take_over(begun)
    small = {"workload": "ctr", "shape": {"rows": 10007, "hidden": 64}, "batch_size": 50}
    benchmark.configure(
        suites=[SUITE | small | {"systems": systems}],
        topologies=["4n1g"],
        repeats=1,
        time_limit=600,
    )
    answer = benchmark.snakemake("--jobs", "1", timeout=1500)
    assert answer.returncode == 0, answer.stdout[-5000:]
    for name in systems:
        run = benchmark.folder / f"results/runs/small/{name}+servers-1/4n1g/1"
        log = (run / "train.log").read_text()
        for role in ("rank", "server"):
            places = dict(re.findall(rf"{role} (\d+): started on (\S+), process", log))
            assert sorted(places) == ["0", "1", "2", "3"], name
            assert len(set(places.values())) == 4, name
