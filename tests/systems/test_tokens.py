"""Every framework that trains on tokens reads the same ones, each rank its own, and counts them."""

import pytest
from reperf.data.tokens.convert import convert
from reperf.data.tokens.embedded import make_text
from reperf.data.tokens.manifest import TokenSettings
from reperf.systems import load_systems
from shapes import TINY_GPT2
from trainer import losses, small, step_log, trained_by

TRAINED = [name for name, system in load_systems().items() if trained_by(system, "tokens")]


@pytest.fixture(scope="module")
def logs(tmp_path_factory, trainer_of):
    """The log of a system's run on the embedded text, trained once."""
    folder = tmp_path_factory.mktemp("tokens")
    make_text(folder / "text.txt")
    settings = TokenSettings(tokens=str(folder / "text.txt"), bpe=None, parts=2, seed=1)
    convert(settings, folder / "ids", "ids", workers=1)
    done = {}

    def log_of(name: str) -> str:
        if name not in done:
            read = {"input": "ids", "data": str(folder / "ids"), "iterations": 4}
            record, log = trainer_of(name).train(workload="gpt2-124m", **read)
            assert record.status == "ok", log[-5000:]
            done[name] = log
        return done[name]

    return log_of


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(
            name,
            marks=[pytest.mark.xdist_group(name)]
            + [pytest.mark.every_system] * (name != "pytorch"),
        )
        for name in TRAINED
    ],
)
def test_ranks_train_on_tokens_of_their_own_which_are_counted(name, logs):
    log = logs(name)
    per_step = 2 * small(name, workload="gpt2-124m")["batch_size"]
    counted = [(step["samples"], step["tokens"]) for step in step_log(log)[1]]
    assert counted == [
        (step * per_step, step * per_step * TINY_GPT2["context"]) for step in range(1, 5)
    ]
    for rank in (0, 1):
        assert losses(log, rank) == pytest.approx(losses(logs("pytorch"), rank), abs=1e-5)
    assert abs(losses(log, 0)[0] - losses(log, 1)[0]) > 1e-3
