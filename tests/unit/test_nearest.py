"""What somebody meant: words, topologies and targets."""

import pytest
from reperf.config import load_report
from reperf.nearest import did_you_mean, nearest, of_topology
from reperf.systems import load_systems
from reperf.targets import meant_target

SUITE = {
    "name": "resnet50-fp32",
    "workload": "resnet50",
    "precision": "fp32",
    "batch_size": 4,
    "systems": ["pytorch", "mxnet"],
    "repeats": 3,
}
RUN = "results/runs/resnet50-fp32/pytorch/1n2g/3/run.json"


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


@pytest.mark.parametrize(
    ("target", "meant"),
    [
        ("results/reprot.html", "results/report.html"),
        ("figures/resnet50-fp23-speedup.svg", "figures/resnet50-fp32-speedup.svg"),
        ("archive/resnet-fp32.zip", "archive/resnet50-fp32.zip"),
        ("results/runs/resnet50-fp23/pytorch/1n2g/3/run.json", RUN),
        ("results/runs/resnet50-fp32/torch/1n2/3/run.json", RUN),
        ("results/runs/resnet50-fp32/pytorch/1n2g/3", RUN),
        ("results/runs/resnet50-fp32/pytorch/1n2g/9/run.json", RUN.replace("/3/", "/1/")),
        ("results/runs/resnet50-fp32/caffe/1n2g/3/run.json", None),
        ("results/runs", None),
        ("mesure", "measure"),
        ("nonsense", None),
        ("a" * 10**6, None),
    ],
)
def test_a_target_is_meant_for_a_file_of_the_report(target, meant):
    (suite,) = load_report({"topologies": ["1n1g", "1n2g"], "suites": [SUITE]}).suites
    assert meant_target(target, {suite.name: suite}) == meant
