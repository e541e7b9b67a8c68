"""Every system trains over two nodes of a real cluster, started by its own launcher."""

import re

import pytest
from reperf.systems import load_systems
from slurm_benchmark import SUITE, new_slurm_benchmark


@pytest.mark.every_system
def test_every_system_trains_on_two_nodes(tmp_path, every_environment, cluster):
    benchmark = new_slurm_benchmark(tmp_path / "benchmark", every_environment, cluster)
    systems = list(load_systems())
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
