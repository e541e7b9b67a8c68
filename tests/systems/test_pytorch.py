"""What the PyTorch trainer refuses, and its loader."""

import shutil

import numpy as np
import pytest
import simplejpeg

from tests.systems.trainer import losses, on_ranks, step_log

pytestmark = pytest.mark.xdist_group("pytorch")
IMAGES = {"batch_size": 4, "shape": {"image_size": 32}}


@pytest.fixture
def pytorch(trainer_of):
    return trainer_of("pytorch")


@pytest.fixture
def tfrecord(records):
    return records("tfrecord")


@pytest.fixture
def spoilt(tfrecord, tmp_path):
    """The record parts with one that a function of its bytes has changed, in a folder by a name."""

    def spoil(name, part, change):
        folder = tmp_path / name
        shutil.copytree(tfrecord, folder)
        (folder / part).write_bytes(change((tfrecord / part).read_bytes()))
        return folder

    return spoil


@pytest.mark.weekly
def test_a_rank_that_gives_up_ends_the_run_and_ranks_read_different_parts(
    pytorch, tfrecord, spoilt
):
    """Only rank 1 reads the second part, so only rank 1 meets the image that is broken there."""

    def blank(content):
        part = bytearray(content)
        for line in (tfrecord / "part-00001.idx").read_text().splitlines():
            offset, size = map(int, line.split())
            start = part.index(b"\xff\xd8\xff", offset)
            part[start : offset + size - 200] = bytes(offset + size - 200 - start)
        return part

    broken = spoilt("tfrecord", "part-00001", blank)
    record, _ = pytorch.train(input="tfrecord", data=str(broken), iterations=1000)
    assert record.status == "failed"
    assert record.reason.startswith(f"rank 1: {broken}/part-00001 at byte ")
    assert "does not decode" in record.reason


@pytest.mark.weekly
@pytest.mark.parametrize(("workload", "fall"), [("resnet50", 0.5), ("bert-base", 0.2)])
def test_mixed_precision_trains_and_the_loss_on_one_batch_falls(pytorch, workload, fall):
    record, log = pytorch.train_well(workload=workload, topology="1n1g", precision="amp")
    assert str(record.computed_in) == "bfloat16, float32 weights"
    assert losses(log, 0)[-1] < losses(log, 0)[0] - fall


def test_the_images_of_the_folder_can_be_trained_on(pytorch, images):
    pytorch.said(*pytorch.program(input="folder", data=str(images), iterations=2, **IMAGES))


ANOTHER_MODEL = """
import torch
from trainers.frameworks.torch import resnet50
class Another(resnet50.ResNet50):
    def __init__(self, flags):
        super().__init__(flags)
        self.extra = torch.nn.Linear(1, 1)
resnet50.ResNet50 = Another
"""
"""Its weights are the recipe's, and it has two of its own."""


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"before": ANOTHER_MODEL}, "the model has 163 weights, resnet50 has 161"),
        ({"input": "folder", "data": "/nowhere"}, "/nowhere: rank 0 has no image"),
    ],
)
def test_what_cannot_be_trained_is_refused_in_one_line(pytorch, changes, reason):
    answer = pytorch.python(*pytorch.program(**IMAGES | changes))
    assert answer.returncode == 1
    (line,) = [line for line in answer.stdout.splitlines() if line.startswith(":::REFUSED")]
    assert line.startswith(f":::REFUSED rank 0: {reason}")
    assert "Traceback" not in answer.stdout


@pytest.mark.weekly
def test_a_model_without_padding_trains_the_same(pytorch, proofs):
    usual = proofs("pytorch", "bert-base")
    unpadded = proofs("pytorch", "bert-base", variant="unpadded")
    for rank in range(2):
        assert losses(unpadded[1], rank) == pytest.approx(losses(usual[1], rank), abs=1e-5)
    tokens = [step["tokens"] for step in step_log(unpadded[1])[1]]
    assert tokens == [step["tokens"] for step in step_log(usual[1])[1]]
    assert 0 < tokens[0] < usual[0].run.global_batch * usual[0].run.shape["sequence_length"]


@pytest.mark.weekly
def test_a_compiled_model_trains_the_same(pytorch):
    """Against one that is not compiled, from the same start."""
    asked = {"workload": "alexnet", "batch_size": 4}
    usual, compiled = (
        losses(pytorch.said(*pytorch.program("--proof", **asked, variant=variant)), 0)
        for variant in (None, "compile")
    )
    assert compiled == pytest.approx(usual, abs=1e-3)


SAME_LAYERS = """
import torch
from torch import nn
from trainers.frameworks.torch import compiled, gpt

torch.manual_seed(0)
PAIRS = {
    "stem": (nn.Conv2d(3, 64, 7, stride=2, padding=3, bias=False), compiled.Stem(3, 64)),
    "pool": (nn.MaxPool2d(3, stride=2, padding=1), compiled.MaxPool()),
    "norm": (nn.BatchNorm2d(3), compiled.BatchNorm2d(3)),
}
for name, (usual, ours) in PAIRS.items():
    ours.load_state_dict(usual.state_dict())
    for size in ((10, 12), (10, 11), (9, 12)):
        images = torch.randint(0, 4, (2, 3, *size)).float()  # of equal ones the first is chosen
        seen = []
        for layer in (usual, ours):
            x = images.clone().requires_grad_()
            y = layer(x)
            y.backward(torch.rand(y.shape, generator=torch.Generator().manual_seed(1)))
            kept = [average for name, average in layer.named_buffers() if "running" in name]
            seen.append([y, x.grad, *(weight.grad for weight in layer.parameters()), *kept])
            layer.zero_grad()
        for one, other in zip(*seen):
            assert torch.allclose(one, other, rtol=1e-4, atol=1e-5), (name, size)

x, weight = torch.randn(2, 3, 8), torch.randn(50, 8)
usual = gpt.products(x, weight)
torch.set_autocast_enabled("cuda", True)  # under which rows are padded
padded = gpt.products(x, weight)
assert padded.shape[2] == gpt.LANES and padded[..., 50:].max() == -torch.inf
assert torch.allclose(padded[..., :50], usual, atol=1e-5)
"""


def test_layers_for_the_compiler_give_what_the_usual_ones_give(pytorch):
    """Outputs, gradients and running averages, of even and odd images; and padded logits."""
    pytorch.said("-c", SAME_LAYERS)


@pytest.mark.weekly
def test_each_rank_drops_out_its_own(pytorch, tmp_path):
    """Two ranks with the same batch and a rate of zero: nothing else can change a loss."""
    program = tmp_path / "alexnet.py"
    program.write_text(f"""
import runpy
import numpy as np
from trainers.recipes import alexnet
noise = alexnet.synthetic_batch
alexnet.learning_rate = lambda global_batch: 0.0
alexnet.synthetic_batch = lambda shape, count, random: noise(shape, count, np.random.RandomState(1))
runpy.run_path({str(pytorch.system.trainer("alexnet"))!r}, run_name="__main__")
""")
    flags = pytorch.flags(workload="alexnet", batch_size=2, iterations=3)
    said = pytorch.said(*on_ranks(2, program, *flags))
    assert len({*losses(said, 0), *losses(said, 1)}) == 2 * 3


def test_a_fixed_loss_scale_stays_what_it_is_after_an_overflow(pytorch):
    """A gradient within float32, whose 128-fold is not."""
    said = pytorch.answer("""
import json, torch
from trainers.contract.precision import Precision
from trainers.contract.recipe import Sgd
from trainers.frameworks.torch.backend import make_scaler, torch_optimizer
scaler, weights = make_scaler(Precision("float16", 128.0)), []
for steepness in (3.0, 3e37, 3.0):
    weight = torch.nn.Parameter(torch.tensor(1.0))
    groups = [{"params": [weight], "weight_decay": 0.0}]
    optimizer = torch_optimizer(groups, 0.5 / 128, Sgd(momentum=0.9, weight_decay=0.0))
    scaler.scale(weight * steepness).backward()
    scaler.step(optimizer)
    scaler.update()
    weights.append(weight.item())
print(json.dumps([repr(weight) for weight in weights] + [scaler.factor]))""")
    assert said == ["-0.5", "-inf", "-0.5", 128.0]


def test_the_records_hold_the_folders_images_and_labels_each_for_one_rank(
    pytorch, images, tfrecord
):
    read = pytorch.answer(f"""
import hashlib, json
from trainers.inputs.jpegs import Folder
from trainers.inputs.tfrecord import Records
def all_of(source):
    pairs = map(source.read, range(len(source)))
    return sorted((hashlib.sha256(jpeg).hexdigest(), label) for jpeg, label in pairs)
print(json.dumps([
    [all_of(kind(path, *place)) for place in ((0, 1), (0, 2), (1, 2))]
    for kind, path in ((Folder, {str(images)!r}), (Records, {str(tfrecord)!r}))
]))""")
    wanted = read[0][0]
    assert len(wanted) == 12
    for whole, *ranks in read:
        assert whole == wanted
        assert all(ranks)
        assert sorted(ranks[0] + ranks[1]) == wanted


def test_records_that_are_not_what_their_index_says_or_hold_no_image_are_refused(pytorch, spoilt):
    wrong = {
        spoilt("short", "part-00001", lambda part: part[:-1]): "/part-00001: ends before its index",
        spoilt(
            "shifted", "part-00001", lambda part: b"\0" + part
        ): "/part-00001 at byte 0: no record of ",
        spoilt(
            "other", "part-00000", lambda part: part.replace(b"image/encoded", b"image/unknown")
        ): "/part-00000 at byte 0: no image; allowed: an Example",
    }
    messages = pytorch.answer(f"""
import json
from trainers.contract.steplog import Refused
from trainers.inputs.tfrecord import Records
def refusal(folder):
    try:
        records = Records(folder, 0, 1)
        return str(list(map(records.read, range(len(records)))))
    except Refused as error:
        return str(error)
print(json.dumps([refusal(folder) for folder in {[str(folder) for folder in wrong]}]))""")
    for message, (folder, reason) in zip(messages, wrong.items(), strict=True):
        assert message.startswith(f"{folder}{reason}")


def test_a_crop_is_the_part_of_the_image_that_it_says_it_is(pytorch, images):
    """Decoded small or whole, the part has the mean colours that the whole image has there.

    Below it are more rows, which are not decoded.
    """
    path = min(images.glob("train/*/*.JPEG"))
    farthest = {32: 12, 64: 2, 224: 1}  # of 255; of small images a pixel is eight of the whole one
    crops = pytorch.answer(f"""
import json, numpy as np
from trainers.inputs import jpegs
jpeg = open({str(path)!r}, "rb").read()
height, width = 300, 260
jpegs._random_part = lambda *_: (100, 40, height, width)
def crop(size, flipped):
    out = np.empty((size, size, 3), np.uint8)
    jpegs.random_crop(jpeg, [flipped] + [0.5] * (jpegs.DRAWS - 1), out)
    return out.tolist()
sizes = {list(farthest)}
print(json.dumps([[crop(size, flipped) for size in sizes] for flipped in (0.9, 0.1)]))""")
    part = simplejpeg.decode_jpeg(path.read_bytes())[100:400, 40:300]
    for views, turn in zip(crops, (1, -1), strict=True):
        for size, crop in zip(farthest, map(np.array, views), strict=True):
            error = block_means(part, 4) - block_means(crop[:, ::turn], 4)
            assert np.abs(error).max() < farthest[size]


def block_means(image, blocks: int):
    """Mean colours of blocks x blocks parts of an image."""
    rows = np.array_split(image, blocks, axis=0)
    return np.array([[b.mean((0, 1)) for b in np.array_split(row, blocks, axis=1)] for row in rows])


def test_batches_are_the_same_whatever_the_number_of_threads_and_in_processes(pytorch, tfrecord):
    arguments = pytorch.flags(batch_size=5, input="tfrecord", data=str(tfrecord))
    one, four, processes, without, other, locked = pytorch.answer(f"""
import itertools, json, os
from trainers.contract.flags import parse_flags, parse_names
from trainers.inputs import jpegs
from trainers.recipes import resnet50
jpegs.PORTION = 2
locked = []
def read(*more, device="cpu"):
    flags = parse_flags(resnet50, [*parse_names({arguments})[1], f"--device={{device}}", *more])
    endless = jpegs.batches(flags, 0, 1, lambda array: locked.append(array.nbytes))
    # All at once, so that memory which is filled anew too early shows.
    batches = list(itertools.islice(endless, 6))
    return [[images.sum(axis=(1, 2, 3)).tolist(), labels.tolist()] for images, labels in batches]
print(json.dumps([
    read("--seed=1", "--loader-threads=1"),
    read("--seed=1", "--loader-threads=4"),
    read("--seed=1", "--loader-threads=2", device="cuda"),
    delattr(os, "memfd_create") or read("--seed=1", "--loader-threads=1", device="cuda"),
    read("--seed=2", "--loader-threads=1"),
    locked,
]))""")
    assert one == four == processes == without
    assert one != other
    assert set(locked) == {5 * 64 * 64 * 3}


def test_a_process_that_decodes_and_ends_is_told_as_that(pytorch, tfrecord):
    arguments = pytorch.flags(batch_size=5, input="tfrecord", data=str(tfrecord))
    said = pytorch.answer(f"""
import json, multiprocessing
from trainers.contract.flags import parse_flags, parse_names
from trainers.inputs import jpegs
from trainers.recipes import resnet50
more = ["--device=cuda", "--loader-threads=1"]
endless = jpegs.batches(parse_flags(resnet50, [*parse_names({arguments})[1], *more]), 0, 1)
next(endless)
[process] = multiprocessing.active_children()
process.kill()
process.join()
try:
    list(endless)
except RuntimeError as error:
    print(json.dumps(str(error)))""")
    assert said == "a process that decodes images has ended"


def test_parts_of_images_have_the_areas_and_shapes_that_are_asked_for_and_lie_anywhere(pytorch):
    """Source of the limits: Szegedy et al., Going Deeper with Convolutions (2014), section 6."""
    parts = pytorch.answer("""
import json, numpy as np
from trainers.inputs import jpegs
drawn = np.random.default_rng(1).random((4000, jpegs.DRAWS))[:, 1:].tolist()
print(json.dumps([jpegs._random_part(375, 500, one) for one in drawn]))""")
    top, left, height, width = np.array(parts).T
    assert top.min() == left.min() == 0
    assert (top + height).max() == 375
    assert (left + width).max() == 500
    share, shape = height * width / (375 * 500), width / height
    assert share.min() == pytest.approx(0.08, abs=0.005)
    assert share.max() > 0.9
    assert (shape.min(), shape.max()) == pytest.approx((3 / 4, 4 / 3), abs=0.01)
    assert np.log(shape).mean() == pytest.approx(0, abs=0.05)  # wide ones fit more often


@pytest.mark.weekly
@pytest.mark.parametrize("accumulation", [1, 2])
def test_each_rank_is_timed_by_itself_and_the_losses_stay_the_same(pytorch, tmp_path, accumulation):
    program = tmp_path / "program.py"
    program.write_text("""
import runpy, sys
from trainers.frameworks.torch import backend
if sys.argv.pop(1) == "untimed":
    backend.DataParallel.pass_alone = None
del sys.argv[0]
runpy.run_path(sys.argv[0], run_name="__main__")
""")
    flags = pytorch.flags(**IMAGES, topology="1n2g", iterations=3, accumulation=accumulation)
    path = str(pytorch.system.trainer("resnet50"))
    timed, untimed = (
        step_log(pytorch.said(*on_ranks(2, program, how, path, *flags)))
        for how in ("timed", "untimed")
    )
    assert [step["loss"] for step in timed[1]] == [step["loss"] for step in untimed[1]]
    assert timed[0]["weight_digests"] == untimed[0]["weight_digests"]
    assert len([seconds for seconds in timed[0]["rank_seconds_alone"] if seconds > 0]) == 2
    assert untimed[0]["rank_seconds_alone"] == [None, None]
    assert timed[0]["rank_seconds_waited"] == [0, 0]


def test_ranks_do_not_copy_each_others_batch_norm(pytorch):
    assert not pytorch.answer("""
import json, torch
import torch.distributed as dist
from trainers.frameworks.torch.backend import distributed
dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
model = distributed(torch.nn.BatchNorm2d(3), torch.device("cpu"))
print(json.dumps(model.will_sync_module_buffers()))""")
