"""Every framework that trains on ids reads the same ones, each rank its own, and counts them."""

from collections.abc import Iterator
from itertools import accumulate, islice
from pathlib import Path

import pytest
from reperf.data.pairs.convert import convert as convert_pairs
from reperf.data.pairs.embedded import make as make_pairs
from reperf.data.pairs.manifest import PairSettings
from reperf.data.tokens.convert import convert
from reperf.data.tokens.embedded import make as make_text
from reperf.data.tokens.manifest import TokenSettings
from reperf.systems import load_systems
from trainers.inputs.pairs import Pairs
from trainers.inputs.tokens import Tokens

from tests.helpers.shapes import TINY_GPT2, TINY_TRANSFORMER
from tests.systems.trainer import losses, recipe_of, step_log, trained_by

SHAPES = {"gpt2-124m": TINY_GPT2, "transformer": TINY_TRANSFORMER | {"longest": 72}}
READERS = {"gpt2-124m": Tokens, "transformer": Pairs}
MORE_FLAGS = {"gpt2-124m": (), "transformer": ("--proof",)}  # without dropout
BATCHES = {"gpt2-124m": 4, "transformer": 128}
CASES = [
    (name, workload)
    for name, system in load_systems().items()
    for workload in SHAPES
    if workload in trained_by(system)
]


@pytest.fixture(scope="module")
def sets(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The embedded sets as ids, by the workload that trains on them."""
    folder = tmp_path_factory.mktemp("ids")
    make_text(folder / "text.txt")
    settings = TokenSettings(tokens=str(folder / "text.txt"), bpe=None, parts=2, seed=1)
    convert(settings, folder / "tokens", "ids", workers=1)
    make_pairs(folder / "own")
    settings = PairSettings(pairs=str(folder / "own"), joint_bpe=None, longest=72, parts=2, seed=1)
    convert_pairs(settings, folder / "pairs", "ids", workers=1)
    return {"gpt2-124m": folder / "tokens", "transformer": folder / "pairs"}


@pytest.fixture(scope="module")
def logs(sets, trainer_of):
    """The log of a system's run on the embedded set, trained once."""
    done = {}

    def log_of(name: str, workload: str) -> str:
        if (name, workload) not in done:
            record, log = trainer_of(name).train(
                workload=workload,
                more_flags=MORE_FLAGS[workload],
                shape=SHAPES[workload],
                batch_size=BATCHES[workload],
                input="ids",
                data=str(sets[workload]),
                iterations=4,
            )
            assert record.status == "ok", log[-5000:]
            done[name, workload] = log
        return done[name, workload]

    return log_of


def counted(workload: str, folder: Path) -> Iterator[int]:
    """The tokens of both ranks after each iteration, as the reader gives them."""
    ranks = (
        READERS[workload](folder, SHAPES[workload], BATCHES[workload], rank, 2) for rank in (0, 1)
    )
    count = recipe_of(workload).counts
    return accumulate(
        sum(int(count(one)["tokens"]) for one in both) for both in zip(*ranks, strict=True)
    )


@pytest.mark.parametrize(
    ("name", "workload"),
    [
        pytest.param(
            *case,
            marks=[pytest.mark.xdist_group(case[0])]
            + [pytest.mark.every_system] * (case[0] != "pytorch"),
        )
        for case in CASES
    ],
)
def test_ranks_train_on_tokens_of_their_own_which_are_counted(name, workload, logs, sets):
    log = logs(name, workload)
    steps = step_log(log)[1]
    assert [step["samples"] for step in steps] == [
        2 * BATCHES[workload] * number for number in range(1, 5)
    ]
    read = list(islice(counted(workload, sets[workload]), 4))
    assert [step["tokens"] for step in steps] == read
    assert len(set(read)) == 4
    for rank in (0, 1):
        pytorchs = losses(logs("pytorch", workload), rank)
        assert losses(log, rank) == pytest.approx(pytorchs, abs=1e-5)
    assert abs(losses(log, 0)[0] - losses(log, 1)[0]) > 1e-3
