"""What the PyTorch trainer refuses, and its loader."""

import shutil

import numpy as np
import pytest
import simplejpeg
from reperf.config import Run
from reperf.systems.environments import read_environment
from reperf.training.train import trainer_flags
from trainer import SMALL, losses


@pytest.fixture(scope="session")
def pytorch(trainer_of):
    return trainer_of("pytorch")


@pytest.fixture(scope="session")
def tfrecord(records):
    return records("tfrecord")


def alone(pytorch, before: str = "pass", **changes: object):
    """Train in one process without a launcher, after running some code in it."""
    settings = SMALL | {"system": "pytorch", "batch_size": 4, "image_size": 32} | changes
    flags = trainer_flags(Run.model_validate(settings), pytorch.system)
    code = f"import sys, train; from pytorch import training; sys.argv[1:] = {flags}; {before}\n"
    code += "train.run(train.input_batches, train.torch_sgd)"
    return pytorch.python("-c", code)


def test_a_rank_that_gives_up_ends_the_run_and_ranks_read_different_parts(
    pytorch, tfrecord, tmp_path
):
    """Only rank 1 reads the second part, so only rank 1 meets the image that is broken there."""
    broken = tmp_path / "tfrecord"
    shutil.copytree(tfrecord, broken)
    part = bytearray((broken / "part-00001").read_bytes())
    for line in (broken / "part-00001.idx").read_text().splitlines():
        offset, size = map(int, line.split())
        start = part.index(b"\xff\xd8\xff", offset)
        part[start : offset + size - 200] = bytes(offset + size - 200 - start)
    (broken / "part-00001").write_bytes(part)
    record, _ = pytorch.train(input="tfrecord", data=str(broken), iterations=1000)
    assert record.status == "failed"
    assert record.reason.startswith(f"rank 1: {broken}/part-00001 at byte ")
    assert "does not decode" in record.reason


def test_mixed_precision_trains_and_the_loss_on_one_batch_falls(pytorch):
    record, log = pytorch.train(topology="1n1g", precision="amp")
    assert (record.status, record.reason) == ("ok", ""), log
    assert losses(log, 0)[-1] < losses(log, 0)[0] - 0.5


def test_the_images_of_the_folder_can_be_trained_on(pytorch, images):
    answer = alone(pytorch, input="folder", data=str(images), iterations=2)
    assert answer.returncode == 0, answer.stdout


def test_another_model_is_refused(pytorch):
    other = """
class Larger(training.ResNet50):
    def __init__(self, seed):
        super().__init__(seed)
        self.extra = training.nn.Linear(1, 1)
training.ResNet50 = Larger
"""
    answer = alone(pytorch, before=other)
    assert answer.returncode == 1
    assert ":::REFUSED rank 0: the model has 25557034 parameters" in answer.stdout


def test_a_loss_that_is_not_finite_is_refused(pytorch):
    answer = alone(pytorch, before="training.resnet50.learning_rate = lambda batch: 1e30")
    assert answer.returncode == 1
    assert ":::REFUSED rank 0: the loss at iteration 2 is nan" in answer.stdout


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"variant": "static-loss-scale"}, "--loss-scale is for float16"),
        ({"input": "tfrecord", "data": "/nowhere"}, "/nowhere: 0 parts for 1 ranks"),
        ({"input": "folder", "data": "/nowhere"}, "/nowhere: rank 0 has no image"),
    ],
)
def test_what_cannot_be_trained_is_refused_in_one_line(pytorch, changes, reason):
    answer = alone(pytorch, **changes)
    assert answer.returncode == 1
    (line,) = [line for line in answer.stdout.splitlines() if line.startswith(":::REFUSED")]
    assert line.startswith(f":::REFUSED rank 0: {reason}")
    assert "Traceback" not in answer.stdout


def test_the_records_hold_the_folders_images_and_labels_each_for_one_rank(
    pytorch, images, tfrecord
):
    read = pytorch.answer(f"""
import hashlib, json
from jpegs import Folder
from tfrecord import Records
def all_of(source):
    pairs = map(source.read, range(len(source)))
    return sorted((hashlib.sha256(jpeg).hexdigest(), label) for jpeg, label in pairs)
print(json.dumps({{
    "folder": all_of(Folder({str(images)!r}, 0, 1)),
    "folder ranks": [all_of(Folder({str(images)!r}, rank, 2)) for rank in (0, 1)],
    "records": all_of(Records({str(tfrecord)!r}, 0, 1)),
    "record ranks": [all_of(Records({str(tfrecord)!r}, rank, 2)) for rank in (0, 1)],
}}))""")
    assert len(read["folder"]) == 12
    assert read["records"] == read["folder"]
    for ranks in (read["folder ranks"], read["record ranks"]):
        assert all(ranks)
        assert sorted(ranks[0] + ranks[1]) == read["folder"]


def test_parts_that_are_not_what_their_index_says_are_refused(pytorch, tfrecord, tmp_path):
    short, shifted = tmp_path / "short", tmp_path / "shifted"
    for folder in (short, shifted):
        shutil.copytree(tfrecord, folder)
    part = (tfrecord / "part-00001").read_bytes()
    (short / "part-00001").write_bytes(part[:-1])
    (shifted / "part-00001").write_bytes(b"\0" + part)
    messages = pytorch.answer(f"""
import json
from steplog import Refused
from tfrecord import Records
def refusal(folder):
    try:
        records = Records(folder, 0, 1)
        return list(map(records.read, range(len(records))))
    except Refused as error:
        return str(error)
print(json.dumps([refusal(folder) for folder in ({str(short)!r}, {str(shifted)!r})]))""")
    assert messages[0].startswith(f"{short}/part-00001: ends before its index")
    assert messages[1].startswith(f"{shifted}/part-00001 at byte 0: no record of ")


def test_a_crop_is_the_part_of_the_image_that_it_says_it_is(pytorch, images):
    """Decoded small or whole, the part has the mean colours that the whole image has there."""
    path = next(images.glob("train/*/*.JPEG"))
    crops = pytorch.answer(f"""
import json, numpy as np, jpegs
jpeg = open({str(path)!r}, "rb").read()
height, width = 300, 260
jpegs._random_part = lambda *_: (100, 40, height, width)
print(json.dumps([jpegs.random_crop(jpeg, size, np.random.default_rng(seed)).tolist()
                  for size in (32, 64, 224) for seed in (0, 5)]))""")
    part = simplejpeg.decode_jpeg(path.read_bytes())[100:400, 40:300]
    for crop in map(np.array, crops):
        quarters = [block_means(image, 4) for image in (part, crop)]
        error = min(
            np.abs(quarters[0] - view).max() for view in (quarters[1], quarters[1][:, ::-1])
        )
        assert error < 8  # of 255


def block_means(image, blocks: int):
    """Mean colours of blocks x blocks parts of an image."""
    rows = np.array_split(image, blocks, axis=0)
    return np.array([[b.mean((0, 1)) for b in np.array_split(row, blocks, axis=1)] for row in rows])


def test_every_package_of_the_environment_is_pinned(pytorch):
    lock = pytorch.system.lock.read_text()
    pins = dict(line.split("==") for line in lock.splitlines() if "==" in line and line[0] != "#")
    for name, version in read_environment(pytorch.environment).packages.items():
        assert version.partition("+")[0] == pins[name]
