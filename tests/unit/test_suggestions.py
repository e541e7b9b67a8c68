"""What somebody meant: words and topologies."""

import pytest
from reperf.suggestions import did_you_mean, nearest, of_topology
from reperf.systems import load_systems


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("pytorhc", "pytorch"),
        ("PaddlePaddle", "paddlepaddle"),
        ("ngc_mxnet", "ngc-mxnet"),
        ("tensorflow", "tensorflow2"),
        ("pytorch+compile", "pytorch"),
        ("pax", None),
        ("caffe", None),
        ("", None),
        (3, None),
        ("a" * 10**6, None),
    ],
)
def test_a_word_is_meant_for_the_one_that_is_most_like_it(word, meant):
    assert nearest(word, load_systems()) == meant
    assert did_you_mean(word, load_systems()) == (f"; did you mean {meant}?" if meant else "")


@pytest.mark.parametrize(
    ("word", "meant"),
    [("2x8", "2n8g"), ("1n8", "1n8g"), ("4 nodes, 8 GPUs", "4n8g"), ("8", None), ("0n1g", None)],
)
def test_two_numbers_are_a_topology(word, meant):
    assert of_topology(word) == (f"; did you mean {meant}?" if meant else "")
