"""Which runs are run again: the one rule behind retries, `reperf runs` and the closing line."""

from pathlib import Path

import pytest
from reperf.cli import main
from reperf.errors import ReperfError
from reperf.measuring.summary import summarise
from reperf.measuring.tables import MEASUREMENTS, SUMMARY, read_measurements, write_table
from reperf.reruns import complete

TABLES = Path("results/summary.csv"), Path("results/measurements.csv")


def row(system: str, repeat: int, status: str, source: str = "") -> dict:
    folder = f"{source or 'results'}/runs/one/{system}/1n1g/{repeat}"
    return dict.fromkeys(MEASUREMENTS) | {
        "suite": "one",
        "system": system,
        "workload": "resnet50",
        "precision": "fp32",
        "batch_size_per_device": 4,
        "topology": "1n1g",
        "num_nodes": 1,
        "devices_per_node": 1,
        "repeat": repeat,
        "status": status,
        "reason": "" if status == "ok" else f"it was {status}",
        "throughput": 1.0 if status == "ok" else None,
        "unit": "images/s",
        "log": f"{folder}/train.log",
        "source": source,
    }


def leave(folder: Path, monkeypatch: pytest.MonkeyPatch, *rows: dict) -> None:
    monkeypatch.chdir(folder)
    summary, measurements = TABLES
    write_table(measurements, rows, MEASUREMENTS)
    write_table(summary, summarise(read_measurements(measurements)), SUMMARY)


def named(capsys: pytest.CaptureFixture, *options: str) -> list[str]:
    main(["runs", *options])
    return capsys.readouterr().out.splitlines()


def test_runs_that_another_try_would_not_change_are_not_run_again(tmp_path, monkeypatch, capsys):
    statuses = ("ok", "oom", "unsupported", "failed", "timeout", "refused")
    rows = [row("pytorch", repeat, status) for repeat, status in enumerate(statuses, start=1)]
    leave(tmp_path, monkeypatch, *rows)
    place = "results/runs/one/pytorch/1n1g"
    assert named(capsys, "--failed") == [f"{place}/{repeat}/run.json" for repeat in (4, 5, 6)]
    assert len(named(capsys)) == 6


def test_runs_of_others_are_never_named(tmp_path, monkeypatch, capsys):
    leave(
        tmp_path,
        monkeypatch,
        row("pytorch", 1, "ok"),
        row("mxnet", 1, "failed", "theirs.zip"),
        row("mxnet", 2, "ok", "theirs.zip"),
    )
    assert named(capsys) == ["results/runs/one/pytorch/1n1g/1/run.json"]
    assert named(capsys, "--failed") == []
    assert named(capsys, "--system", "mxnet") == []


@pytest.mark.parametrize("final", ["oom", "unsupported"])
def test_a_cell_of_which_some_runs_ended_for_good_is_complete(tmp_path, monkeypatch, capsys, final):
    """What `reperf runs --failed` does not name, the closing line does not ask to run again."""
    theirs = row("mxnet", 1, "failed", "theirs.zip")
    leave(tmp_path, monkeypatch, row("pytorch", 1, "ok"), row("pytorch", 2, final), theirs)
    complete(*TABLES, Path("complete.txt"), "local")
    assert Path("complete.txt").read_text() == "2 cells, each measured or explained\n"
    assert named(capsys, "--failed") == []


def test_a_cell_with_a_run_that_failed_is_named_with_the_command_that_runs_it(
    tmp_path, monkeypatch
):
    rows = [row("pytorch", 1, "ok"), row("pytorch", 2, "oom"), row("pytorch", 3, "oom")]
    leave(tmp_path, monkeypatch, *rows, row("pytorch", 4, "failed"), row("mxnet", 1, "ok"))
    with pytest.raises(ReperfError) as refusal:
        complete(*TABLES, Path("complete.txt"), "local")
    message = str(refusal.value)
    assert message.startswith("1 of 2 cells failed: one/pytorch/1n1g (partial: 3 of 4 repeats")
    assert message.endswith("snakemake --profile local --forcerun $(reperf runs --failed)")
    assert not Path("complete.txt").exists()
