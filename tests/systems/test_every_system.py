"""One command measures every system on this machine."""

import pandas as pd
import pytest
from reperf.systems import load_systems

from tests.helpers.small_benchmark import SMALL


@pytest.mark.weekly
def test_the_report_of_all_systems_comes_from_one_command(begun_benchmark, every_environment):
    benchmark = begun_benchmark
    # On two devices all train in test_training.py, on four in test_every_system_on_slurm.py.
    benchmark.configure(suites=SMALL["suites"], topologies=["1n1g"], repeats=1, time_limit=600)
    benchmark.made("--config", "systems=all", timeout=3600)
    summary = pd.read_csv(benchmark.folder / "results/summary.csv")
    fp32 = summary[summary["suite"] == "small"].set_index(["system", "topology"])
    assert set(fp32.index) == {(name, "1n1g") for name in load_systems()}
    of_all = {name: one.workloads.get("resnet50") for name, one in load_systems().items()}
    parallel = {name: one.parallel if one else () for name, one in of_all.items()}
    for (name, _), cell in fp32.iterrows():
        assert cell["status"] == ("ok" if "data" in parallel[name] else "unsupported"), cell
    amp = summary[summary["precision"] == "amp"].set_index("system")
    assert amp.loc["oneflow", "status"] == "unsupported"
    assert amp.loc["oneflow", "reason"] == "OneFlow has no amp training on cpu"
    page = (benchmark.folder / "results/report.html").read_text(encoding="utf-8")
    for system in load_systems().values():
        assert system.title in page
