"""Run records: what was written is read again, and nothing else is taken for one."""

import json
from pathlib import Path

import pytest
from reperf.config import load_report
from reperf.errors import ReperfError
from reperf.machine import describe_host
from reperf.training.record import Environment, LastHeard, Power, RunRecord

from tests.helpers.small_benchmark import SMALL


@pytest.fixture
def record() -> RunRecord:
    report = load_report(SMALL)
    return RunRecord(
        status="timeout",
        reason="no end after 300 s; rank 0 of 1 was last heard of at iteration 20, 12 s in",
        run=report.run("small", "pytorch", "1n1g", 1),
        attempt=2,
        command=("torchrun", "train.py", "--data", "Größe/ä"),
        variables={"OMP_NUM_THREADS": "1"},
        environment=Environment(
            lock="envs/pytorch.txt",
            lock_sha256="0" * 64,
            python="3.11.7",
            packages={"torch": "2.9.0"},
        ),
        git_commit=None,
        git_dirty=None,
        host=describe_host(),
        started="2026-01-02T03:04:05.000+00:00",
        ended="2026-01-02T03:09:05.000+00:00",
        seconds=300.0,
        exit_code=None,
        last_heard=(LastHeard(rank=0, iteration=20, seconds=12.0),),
        peak_memory_bytes=(2**30,),
        power=Power(mean_watts=250.0, energy_joules=7500.0, mean_utilisation_percent=98.5),
        log_sha256="f" * 64,
    )


def test_what_was_written_is_read_again(record: RunRecord, tmp_path: Path):
    path = tmp_path / "run.json"
    record.write(path)
    assert RunRecord.read(path) == record


def test_equal_records_are_equal_bytes_that_people_can_read(record: RunRecord, tmp_path: Path):
    for name in ("first", "second"):
        record.model_copy(deep=True).write(tmp_path / name)
    text = (tmp_path / "first").read_bytes()
    assert text == (tmp_path / "second").read_bytes()
    assert "Größe/ä".encode() in text
    assert text.endswith(b"}\n")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("status", "fine"),
        ("record_version", 8),
        ("attempt", "second"),
        ("host", None),
        ("unheard_of", 1),
    ],
)
def test_a_record_with_a_wrong_value_is_none(record: RunRecord, tmp_path: Path, key, value):
    content = record.model_dump(mode="json") | {key: value}
    (tmp_path / "run.json").write_text(json.dumps(content))
    with pytest.raises(ReperfError, match=key):
        RunRecord.read(tmp_path / "run.json")


def test_half_a_record_is_none(record: RunRecord, tmp_path: Path):
    path = tmp_path / "run.json"
    record.write(path)
    path.write_text(path.read_text()[:200])
    with pytest.raises(ReperfError, match=r"Unterminated|Expecting"):
        RunRecord.read(path)


def test_a_record_without_a_seal_is_of_the_first_version(record: RunRecord, tmp_path: Path):
    path = tmp_path / "run.json"
    record.write(path)
    content = json.loads(path.read_text())
    del content["seal"]
    path.write_text(json.dumps(content))
    with pytest.raises(ReperfError, match="changed since it was written"):
        RunRecord.read(path)
    del content["trainer"]
    path.write_text(json.dumps(content | {"record_version": 1}))
    assert RunRecord.read(path).run == record.run
