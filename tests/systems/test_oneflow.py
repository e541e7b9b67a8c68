"""What only OneFlow does: stages of one graph, and logs of its own."""

import signal
import socket

import pytest

from tests.systems.trainer import losses, step_log

pytestmark = [pytest.mark.xdist_group("oneflow"), pytest.mark.weekly]
PIPELINE = {"parallel": {"pipeline": [1, 1], "micro_batches": 1}}


@pytest.fixture
def oneflow(trainer_of):
    return trainer_of("oneflow")


def test_it_logs_where_the_workflow_keeps_logs(oneflow, monkeypatch):
    """Into files, if a user asks it to."""
    monkeypatch.setenv("GLOG_logtostderr", "0")
    oneflow.train_well(topology="1n1g", workload="bert-base", iterations=1)
    assert not (oneflow.folder / "log").exists()
    assert any((oneflow.folder / "logs/oneflow").rglob("*.INFO.*"))


@pytest.mark.parametrize("form", ["synthetic", "ofrecord"])
def test_two_stages_train_as_one_device_does(form, oneflow, records):
    same = {"input": form, "iterations": 3, "batch_size": 4}
    same |= {} if form == "synthetic" else {"data": str(records(form))}
    said, lost = [], []
    for changes in ({"topology": "1n1g"}, {"topology": "1n2g", **PIPELINE}):
        _, log = oneflow.train_well(**same, **changes)
        said.append(step_log(log)[0])
        lost.append(losses(log, 0))
        # Nothing can look into a graph that reads for itself.
        assert ["waited" in step for step in step_log(log)[1]] == 3 * [form == "synthetic"]
    assert lost[0] == lost[1]
    whole, staged = said
    assert staged["parameters"] == whole["parameters"]
    assert (staged["world_size"], staged["global_batch_size"]) == (2, whole["global_batch_size"])
    assert len(set(staged["weight_digests"])) == 2


def test_a_stage_that_dies_is_named(oneflow):
    asked = {"shape": {"image_size": 32}, "batch_size": 2, "iterations": 100_000}
    with oneflow.disturbed(signal.SIGKILL, rank=1, iteration=2):
        record, log = oneflow.train(**asked, **PIPELINE)
    who = f"rank 1 (stage 1) on {socket.gethostname()}"
    assert record.reason.startswith(f"{who} was ended by SIGKILL; "), log[-5000:]
