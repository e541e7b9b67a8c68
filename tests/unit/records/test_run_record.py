"""Run records: what was written is read again, and nothing else is taken for one."""

import json
from pathlib import Path

import pytest
from reperf.errors import ReperfError
from reperf.machine import describe_host
from reperf.records.run_record import LastHeard, Power, RunRecord

from tests.helpers.refusal import refused_in_one_line
from tests.helpers.run_records import record_of, small_run

RECORD = record_of(
    small_run(),
    status="timeout",
    reason="no end after 300 s; rank 0 of 1 was last heard of at iteration 20, 12 s in",
    command=("torchrun", "train.py", "--data", "Größe/ä"),
    variables={"OMP_NUM_THREADS": "1"},
    host=describe_host(),
    exit_code=None,
    last_heard=(LastHeard(rank=0, iteration=20, seconds=12.0),),
    peak_memory_bytes=(2**30,),
    power=Power(mean_watts=250.0, energy_joules=7500.0, mean_utilisation_percent=98.5),
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    RECORD.write(tmp_path / "run.json")
    return tmp_path / "run.json"


def test_what_was_written_is_read_again(path: Path):
    assert RunRecord.read(path) == RECORD


def test_equal_records_are_equal_bytes_that_people_can_read(path: Path):
    text = path.read_bytes()
    RECORD.model_copy(deep=True).write(path)
    assert path.read_bytes() == text
    assert "Größe/ä".encode() in text
    assert text.endswith(b"}\n")


@pytest.mark.parametrize(
    ("key", "value"), [("status", "fine"), ("attempt", "second"), ("host", None), ("unheard_of", 1)]
)
def test_a_record_with_a_wrong_value_is_none(path: Path, key, value):
    path.write_text(json.dumps(RECORD.model_dump(mode="json") | {key: value}))
    with pytest.raises(ReperfError, match=key):
        RunRecord.read(path)


def test_half_a_record_is_none(path: Path):
    path.write_text(path.read_text()[:200])
    with pytest.raises(ReperfError, match=r"Unterminated|Expecting"):
        RunRecord.read(path)


def test_a_record_without_a_seal_has_changed(path: Path):
    content = json.loads(path.read_text())
    del content["seal"]
    path.write_text(json.dumps(content))
    with pytest.raises(ReperfError, match="changed since it was written"):
        RunRecord.read(path)


@pytest.mark.parametrize("version", [7, "2.0"])
def test_a_record_of_another_version_is_refused_by_its_version(path: Path, version):
    path.write_text(json.dumps(json.loads(path.read_text()) | {"record_version": version}))
    with refused_in_one_line(f"{path}: a run record of version {version!r}; this reperf reads 1.0"):
        RunRecord.read(path)
