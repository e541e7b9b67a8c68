"""Every framework trains over two nodes of a real cluster, by every launcher that it has."""

import re

import pandas as pd
import pytest
from reperf.systems import load_systems

from tests.helpers.shapes import TINY_BERT
from tests.helpers.small_benchmark import SMALL
from tests.slurm.slurm_benchmark import WORDS, new_slurm_benchmark

SUITE = SMALL["suites"][0] | {"input": "synthetic"}


@pytest.mark.weekly
def test_every_framework_trains_on_two_nodes_from_the_same_loss(
    tmp_path, built_environments, cluster, begun
):
    # Of systems that are started alike, and compute by one backend, one is enough.
    alike = {
        (one.launch, one.framework, one.backend): one
        for one in load_systems().values()
        if one.why_not("resnet50", "fp32", "cpu") is None
    }
    # Small BERT is compiled soonest; what does not train it trains ResNet-50.
    workloads = {
        one.id: "resnet50" if one.why_not("bert-base", "fp32", "cpu") else "bert-base"
        for one in alike.values()
    }
    benchmark = new_slurm_benchmark(tmp_path / "benchmark", built_environments(*workloads), cluster)
    benchmark.take_over(begun)
    suite = SUITE | {"input": "records"}
    suites = [
        suite | {"name": workload, "workload": workload, "systems": trained_in} | shape
        for workload, shape in (("bert-base", {"shape": TINY_BERT}), ("resnet50", {}))
        if (trained_in := [name for name, one in workloads.items() if one == workload])
    ]
    benchmark.configure(
        suites=suites,
        topologies=["2n2g"],
        repeats=1,
        time_limit=600,
        data=[SMALL["data"], WORDS],
    )
    # One run at a time: four processes of each are more than enough for the machine's cores.
    benchmark.made("--jobs", "1", timeout=3600)
    for name, workload in workloads.items():
        log = benchmark.folder / f"results/runs/{workload}/{name}/2n2g/1/train.log"
        places = dict(re.findall(r"rank (\d+): started on (\S+), process", log.read_text()))
        assert sorted(places) == ["0", "1", "2", "3"], name
        assert len(set(places.values())) == 2, name
    bert = benchmark.cells().set_index("suite").loc[["bert-base"]]
    assert {*bert["unit"], *bert["also_unit"]} == {"sentences/s", "tokens/s"}
    # All read the same batches.
    (tokens,) = set((bert["also_median"] / bert["throughput_median"]).round(6))
    assert TINY_BERT["sequence_length"] / 2 < tokens <= TINY_BERT["sequence_length"]
    runs = pd.read_csv(benchmark.folder / "results/suites/bert-base/measurements.csv")
    assert len(runs) == len(bert) == list(workloads.values()).count("bert-base")
    first, *others = runs["start_loss"]
    assert others == pytest.approx([first] * len(others), abs=1e-4)
    text = (benchmark.folder / "results/report.md").read_text(encoding="utf-8")
    assert "starts elsewhere" not in text


@pytest.mark.weekly
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
    benchmark.made("--jobs", "1", "results/summary.csv", timeout=1500)
    for name in systems:
        run = benchmark.folder / f"results/runs/small/{name}+servers-1/4n1g/1"
        log = (run / "train.log").read_text()
        for role in ("rank", "server"):
            places = dict(re.findall(rf"{role} (\d+): started on (\S+), process", log))
            assert sorted(places) == ["0", "1", "2", "3"], name
            assert len(set(places.values())) == 4, name
