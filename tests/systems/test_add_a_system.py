"""docs/add-a-system.md, followed to the letter, adds a system that trains."""

import re

import pandas as pd

from tests.helpers.small_benchmark import ROOT, SMALL

PAGE = ROOT / "docs/add-a-system.md"
FILE = re.compile(r"^`(workflow/\S+)`:\n\n```\w+\n(.*?)^```", re.MULTILINE | re.DOTALL)


def test_a_system_is_what_it_says_and_what_it_brings(begun_benchmark, built_environments):
    built_environments("pytorch")
    benchmark = begun_benchmark
    benchmark.configure(suites=SMALL["suites"][:1], topologies=["1n2g"], repeats=1)
    page, *_ = PAGE.read_text(encoding="utf-8").split("## Parameter servers")
    files = FILE.findall(page)
    assert [path.rpartition("/")[2] for path, _ in files] == ["system.yaml", "foreach.py"]
    for path, content in files:
        file = benchmark.folder / path
        file.parent.mkdir(exist_ok=True)
        file.write_text(content, encoding="utf-8")
    benchmark.made("results/summary.csv", "--config", "systems=pytorch-foreach")
    summary = pd.read_csv(benchmark.folder / "results/summary.csv")
    assert set(summary["system"]) == {"pytorch-foreach"}
    assert set(summary["status"]) == {"ok"}
