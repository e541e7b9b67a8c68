"""Run records: what was written is read again, and nothing else is taken for one."""

import json
import re
from pathlib import Path

import pytest
from reperf.errors import ReperfError
from reperf.machine import describe_host
from reperf.records.run_record import LastHeard, Power, RunRecord

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


def test_what_was_written_is_read_again_and_equal_records_are_equal_bytes(tmp_path: Path):
    one, other = tmp_path / "one.json", tmp_path / "other.json"
    RECORD.write(one)
    RECORD.model_copy(deep=True).write(other)
    assert RunRecord.read(one) == RECORD
    assert one.read_bytes() == other.read_bytes()
    assert "Größe/ä".encode() in one.read_bytes()
    assert one.read_bytes().endswith(b"}\n")


VERSION = "a run record of version {}; this reperf reads 1.0"


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"status": "fine"}, "status"),
        ({"attempt": "second"}, "attempt"),
        ({"host": None}, "host"),
        ({"unheard_of": 1}, "unheard_of"),
        ({"seal": None}, "has changed since it was written"),
        ({"exit_code": 0}, "has changed since it was written"),
        ({"record_version": 7}, VERSION.format(7)),
        ({"record_version": "2.0"}, VERSION.format("'2.0'")),
        (None, "Expecting property name"),
    ],
)
def test_what_was_edited_cut_or_written_by_another_version_is_no_record(
    tmp_path: Path, changes: dict | None, said: str
):
    path = tmp_path / "run.json"
    RECORD.write(path)
    text = path.read_text()
    path.write_text(text[:200] if changes is None else json.dumps(json.loads(text) | changes))
    with pytest.raises(ReperfError, match=f"^{re.escape(str(path))}: .*{re.escape(said)}.*$"):
        RunRecord.read(path)
