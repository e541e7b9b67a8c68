"""What the doctor asks of frameworks, asked of numpy."""

import json
from types import SimpleNamespace

import numpy as np
import pytest
from trainers.contract import backend, trial
from trainers.contract.steplog import Refused
from trainers.contract.trial import MARK, convolved, try_out
from trainers.frameworks.horovod import check_horovod


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Matrices of one size are enough."""
    monkeypatch.setattr(trial, "LONG_ENOUGH", 0.0)


class Backend(backend.Backend):
    """numpy as a framework of which another rank says what this one says."""

    library, computes, wrong_sum = "numpy", {"cpu": ("bfloat16",)}, 0.0

    def numbers(self, array):
        return array

    array = numbers

    def all_reduce(self, numbers):
        return numbers * 2 + self.wrong_sum


class Trial(trial.Trial):
    wrong_filters = wrong_product = 1.0

    def __init__(self, **wrong: float):
        super().__init__(Backend(SimpleNamespace(device="cpu"), backend.Place(0, 0, 2)))
        vars(self.backend).update(wrong)
        vars(self).update(wrong)

    def convolve(self, images, filters):
        return convolved(images, filters * self.wrong_filters)

    def multiply(self, left, right):
        return left @ right * self.wrong_product


def test_a_convolution_is_scipys():
    from scipy.signal import correlate  # noqa: PLC0415 - takes a second

    random = np.random.default_rng(0)
    images, filters = random.normal(size=(2, 3, 7, 9)), random.normal(size=(4, 3, 3, 2))
    for image, own in zip(images, convolved(images, filters), strict=True):
        for one, output in zip(filters, own, strict=True):
            np.testing.assert_allclose(output, correlate(image, one, mode="valid")[0])


def test_a_rank_says_what_it_found(capsys):
    try_out(Trial(), [4000])
    (line,) = filter(None, capsys.readouterr().out.split("\n"))
    said = json.loads(line[len(MARK) :])
    assert (said["rank"], said["world_size"], said["library"]) == (0, 2, "numpy")
    assert said["convolution_error"] < 1e-6
    assert [one["bytes"] for one in said["transfers"]] == [4000]
    # numpy has no bfloat16: what a framework does not multiply has no rate.
    assert set(said["matrix_rates"]) == {"float32"}
    assert said["matrix_rates"]["float32"] > 0


@pytest.mark.parametrize(
    ("wrong", "what"),
    [
        ({"wrong_filters": 1.1}, "a convolution is 0.1 off numpy's; allowed: up to 0.0001"),
        ({"wrong_filters": 1.0003}, "a convolution is 0.0003 off numpy's"),  # TF32
        ({"wrong_product": 1.0003}, "a matrix product is 0.0003 off numpy's"),
        ({"wrong_filters": np.nan}, "a convolution is nan off numpy's"),
        ({"wrong_sum": 1.0}, "an all-reduce of 4000 bytes gave a wrong sum"),
    ],
)
def test_wrong_numbers_are_refused(wrong, what):
    with pytest.raises(Refused, match=what):
        try_out(Trial(**wrong), [4000])


@pytest.mark.parametrize(
    ("gloo", "nccl", "device", "why"),
    [
        (False, 22105, "cuda", "Horovod is built without gloo; allowed: a build with it"),
        (True, 0, "cuda", "Horovod is built without NCCL"),
    ],
)
def test_a_horovod_whose_ranks_cannot_meet_is_refused(gloo, nccl, device, why):
    build = SimpleNamespace(gloo_built=lambda: gloo, nccl_built=lambda: nccl)
    with pytest.raises(Refused, match=why):
        check_horovod(build, SimpleNamespace(device=device), world_size=2)
