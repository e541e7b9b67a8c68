"""What only OneFlow does: its graphs read for themselves, and it keeps logs of its own."""

import pytest
from reperf.data.text.convert_text import convert
from reperf.data.text.embedded_text import make as make_text
from trainers.inputs.sentences import Sentences
from trainers.recipes import bert

from tests.helpers.shapes import TINY_BERT
from tests.helpers.small_text import text_settings
from tests.systems.trainer import step_log

pytestmark = [pytest.mark.every_system, pytest.mark.xdist_group("oneflow")]


def test_ranks_train_on_text_from_its_start(trainer_of, tmp_path):
    """Though another graph has read the first batch before."""
    make_text(tmp_path / "text.txt")
    settings = text_settings(tmp_path / "text.txt", TINY_BERT, parts=2)
    for form in ("ofrecord", "tfrecord"):
        convert(settings, tmp_path / form, form, workers=1)
    record, log = trainer_of("oneflow").train(
        workload="bert-base", input="ofrecord", data=str(tmp_path / "ofrecord")
    )
    assert record.status == "ok", log[-5000:]
    said, steps = step_log(log)
    assert said["loss_without_dropout"] == pytest.approx(steps[0]["loss"], abs=0.2)
    ranks = [iter(Sentences(tmp_path / "tfrecord", TINY_BERT, 4, rank, 2)) for rank in range(2)]
    read = 0
    for step in steps:
        read += sum(bert.counts(next(batches))["tokens"] for batches in ranks)
        assert step["tokens"] == read


def test_what_it_logs_lies_where_the_workflow_keeps_logs(trainer_of, monkeypatch):
    """It logs into files if a user asks it to."""
    monkeypatch.setenv("GLOG_logtostderr", "0")
    trainer = trainer_of("oneflow")
    record, log = trainer.train(topology="1n1g", workload="bert-base", iterations=1)
    assert record.status == "ok", log[-5000:]
    assert not (trainer.folder / "log").exists()
    assert any((trainer.folder / "logs/oneflow").rglob("*.INFO.*"))
