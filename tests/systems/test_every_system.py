"""One command measures every system on this machine."""

import pandas as pd
import pytest
from reperf.systems import load_systems


@pytest.mark.every_system
def test_the_report_of_all_systems_comes_from_one_command(benchmark):
    benchmark.configure(repeats=1, time_limit=600)
    answer = benchmark.snakemake("--config", "systems=all", timeout=3600)
    assert answer.returncode == 0, answer.stdout[-5000:]
    summary = pd.read_csv(benchmark.folder / "results/summary.csv")
    assert set(summary["system"]) == set(load_systems())
    built = {name for name, system in load_systems().items() if system.trainer.exists()}
    fp32 = summary[(summary["suite"] == "small") & summary["system"].isin(built)]
    assert set(fp32["status"]) == {"ok"}
    assert len(fp32) == 2 * len(built)
    amp = summary[summary["precision"] == "amp"].set_index("system")
    assert amp.loc["oneflow", "status"] == "unsupported"
    assert amp.loc["oneflow", "reason"] == "oneflow has no amp training on cpu"
    page = (benchmark.folder / "results/report.html").read_text(encoding="utf-8")
    for system in load_systems().values():
        assert system.title in page
