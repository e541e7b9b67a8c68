"""What the doctor found on this machine goes into the report, and reruns nothing else."""

import json

import pytest


@pytest.mark.long
def test_the_doctor_looks_at_this_machine_and_the_report_shows_it(finished_benchmark):
    benchmark = finished_benchmark
    assert benchmark.planned() == {}
    benchmark.said("reperf", "doctor")
    kept = json.loads((benchmark.folder / "results/doctor.json").read_text())
    (node,) = kept["node_reports"]
    assert node["probe"]["host"]["hostname"] == node["node"]
    assert {tried["world_size"] for tried in kept["trials"]} == {2}
    assert [found["level"] for found in kept["findings"] if found["check"] == "answer"] == ["ok"]
    assert benchmark.planned() == {"report": 1, "complete": 1}
    said = benchmark.made()
    where = "The report is in results/report.html and results/report.md"
    assert said.splitlines()[-1] == where
    assert "What <code>reperf doctor</code> found" in (
        benchmark.folder / "results/report.html"
    ).read_text(encoding="utf-8")
    assert benchmark.planned() == {}
