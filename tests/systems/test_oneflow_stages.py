"""OneFlow's pipeline: stages of one graph on devices of their own."""

import signal
import socket

import pytest

from tests.systems.trainer import losses, step_log

pytestmark = [pytest.mark.every_system, pytest.mark.xdist_group("oneflow")]

PIPELINE = {"parallel": {"pipeline": [1, 1], "micro_batches": 1}}


def test_two_stages_train_as_one_device_does(trainer_of, records):
    oneflow = trainer_of("oneflow")
    said, lost = [], []
    for form in ("synthetic", "ofrecord"):
        same = {"input": form, "iterations": 3, "batch_size": 4}
        same |= {} if form == "synthetic" else {"data": str(records(form))}
        for changes in ({"topology": "1n1g"}, {"topology": "1n2g", **PIPELINE}):
            record, log = oneflow.train(**same, **changes)
            assert record.status == "ok", record.reason
            said.append(step_log(log)[0])
            lost.append(losses(log, 0))
    assert lost[0] == lost[1]
    assert lost[2] == lost[3]
    whole, staged = said[:2]
    assert staged["parameters"] == whole["parameters"]
    assert (staged["world_size"], staged["global_batch_size"]) == (2, whole["global_batch_size"])
    assert len(set(staged["weight_digests"])) == 2


def test_a_stage_that_dies_is_named(trainer_of):
    oneflow = trainer_of("oneflow")
    asked = {"shape": {"image_size": 32}, "batch_size": 2, "iterations": 100_000}
    with oneflow.disturbed(signal.SIGKILL, rank=1, iteration=2):
        record, log = oneflow.train(**asked, **PIPELINE)
    who = f"rank 1 (stage 1) on {socket.gethostname()}"
    assert record.reason.startswith(f"{who} was ended by SIGKILL; "), log[-5000:]
