"""Reports from environments that somebody else made, alone and beside the lock's."""

import json
import sys
from pathlib import Path

import pandas as pd
import pytest

from tests.helpers.small_benchmark import TOY, Benchmark
from tests.helpers.small_image import NUMPY

RUNS = "results/runs/small/stand-in+{}/1n1g/{}"
LABEL = f"numpy-{NUMPY}"


def configure(benchmark: Benchmark, *entries: dict, **changes: object) -> None:
    systems = [{"system": "stand-in"} | entry for entry in entries]
    suite = TOY["suites"][0] | {"input": "synthetic", "topologies": ["1n1g"], "systems": systems}
    benchmark.configure(suites=[suite], **changes)


@pytest.mark.long
def test_two_builds_stand_in_one_report_and_one_that_changes_is_trained_again_or_refused(
    begun_benchmark: Benchmark, older: Path
):
    entries = {"label": "ours"}, {"environment": str(older), "label": LABEL}
    configure(begun_benchmark, *entries)
    said = begun_benchmark.made("results/report.html")
    trained = [line.split(" 1n1g")[0] for line in said.splitlines() if "run " in line]
    labels = [line.rpartition("+")[2] for line in trained if "stand-in+" in line]
    assert labels in ([LABEL, "ours", "ours", LABEL], ["ours", LABEL, LABEL, "ours"])
    folder = begun_benchmark.folder
    cells = pd.read_csv(folder / "results/summary.csv")
    assert cells[["variant", "status", "n"]].to_numpy().tolist() == [
        ["ours", "ok", 2],
        [LABEL, "ok", 2],
    ]
    built = [key.partition("build=")[2].partition(" ")[0] for key in cells["key"]]
    assert built == ["lock", "environment"]
    page = (folder / "results/report.html").read_text(encoding="utf-8")
    assert f"Stand-in, {LABEL}" in page
    assert f"<code>{older}</code>" in page
    record = json.loads((folder / RUNS.format(LABEL, 1) / "run.json").read_text())
    environment = record["environment"]
    assert environment["framework"] == environment["packages"]["numpy"] == NUMPY
    assert environment["site"]["executable"] == f"{older}/bin/python"
    assert record["command"][0] == f"{older}/bin/python"
    assert begun_benchmark.planned("results/report.html") == {}
    assert "devices of stand-in.site-" in begun_benchmark.said("reperf", "doctor")
    # Somebody upgrades a package: between plan and run it is refused, and planned anew after it.
    (packages,) = older.glob("lib/python3*/site-packages")
    (idna,) = packages.glob("idna-*.dist-info")
    (idna / "METADATA").write_text("Name: idna\nVersion: 1.0\n")
    plan = folder / RUNS.format(LABEL, 1) / "plan.json"
    written = json.loads(plan.read_text())
    plan.write_text(json.dumps(written | {"aside": written["aside"] | {"anew": True}}))
    answer = begun_benchmark.call(sys.executable, "-m", "reperf.training", str(plan))
    assert answer.returncode == 1
    changed = f"environment {older}: has other packages than were planned: idna 1.0 for "
    assert changed in answer.stdout.splitlines()[-1]
    planned = begun_benchmark.planned()
    assert (planned["environment"], planned["train"]) == (1, 2)


@pytest.mark.long
def test_an_environment_alone_makes_a_report_without_a_network_and_one_that_does_not_do_is_a_line(
    begun_benchmark: Benchmark, older: Path
):
    named = {"before": f"source {older}/bin/activate"}
    configure(begun_benchmark, {}, repeats=1, environment=named)
    alone = ["unshare", "--net", "sh", "-c", 'ip link set lo up 2>/dev/null; exec "$@"', "sh"]
    target = RUNS.format("", 1).replace("+", "") + "/run.json"
    begun_benchmark.said(*alone, *begun_benchmark.command(target))
    record = json.loads((begun_benchmark.folder / target).read_text())
    assert (record["status"], record["environment"]["framework"]) == ("ok", NUMPY)
    assert record["environment"]["site"]["named"] == f"after 'source {older}/bin/activate'"
    (package,) = older.glob("lib/python3*/site-packages/numpy")
    package.rename(older / "elsewhere")
    said = begun_benchmark.refused("-n")
    line = f"config.yaml: environment after 'source {older}/bin/activate': has no numpy, the fram"
    assert line in said.splitlines()[-1]
    assert said.splitlines()[-1].startswith("reperf: ")
