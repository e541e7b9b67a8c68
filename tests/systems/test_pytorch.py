"""PyTorch really trains: real processes, real images, its own launcher."""

import shutil
from itertools import pairwise

import numpy as np
import pytest
import simplejpeg
from reperf.environments import read_environment
from reperf.systems import load_systems
from trainer import step_log

FLAGS = {
    "workload": "resnet50",
    "precision": "fp32",
    "batch-size": "4",
    "iterations": "6",
    "print-every": "2",
    "input": "synthetic",
    "image-size": "32",
    "device": "cpu",
    "threads": "1",
    "seed": "1",
}


def flags(**changes: object) -> list[str]:
    chosen = FLAGS | {name.replace("_", "-"): str(value) for name, value in changes.items()}
    return [part for name, value in chosen.items() for part in (f"--{name}", value)]


@pytest.fixture(scope="session")
def pytorch(trainer_of):
    return trainer_of("pytorch")


def torchrun(pytorch, processes: int, **changes: object):
    launcher = ("torchrun", "--standalone", f"--nproc-per-node={processes}")
    return pytorch.launch(*launcher, flags=flags(**changes))


def alone(pytorch, before: str = "pass", **changes: object):
    """Train in one process without a launcher, after running some code in it."""
    code = f"import sys, steplog, train; sys.argv[1:] = {flags(**changes)}; {before}; train.main()"
    return pytorch.python("-c", code)


def test_two_processes_train_on_records_and_end_with_equal_weights(pytorch, tfrecord):
    answer = torchrun(pytorch, 2, input="tfrecord", data=tfrecord)
    assert answer.returncode == 0, answer.stdout
    said, steps = step_log(answer.stdout)
    assert said["parameters"] == 25557032
    assert said["world_size"] == 2
    assert said["global_batch_size"] == 8
    assert len(said["weight_digests"]) == 2
    assert len(set(said["weight_digests"])) == 1
    assert min(said["peak_memory_bytes"]) > 4 * 3 * 25557032  # weights, gradients, momentum
    assert [step["iteration"] for step in steps] == [2, 4, 6]
    assert [step["samples"] for step in steps] == [16, 32, 48]
    assert all(earlier["seconds"] < later["seconds"] for earlier, later in pairwise(steps))
    for rank in range(2):
        assert f"rank {rank}: done" in answer.stdout


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
    answer = torchrun(pytorch, 2, input="tfrecord", data=broken, iterations=1000)
    assert answer.returncode != 0
    (line,) = [line for line in answer.stdout.splitlines() if line.startswith(":::REFUSED")]
    assert line.startswith(f":::REFUSED rank 1: {broken}/part-00001 at byte ")
    assert "does not decode" in line


def test_mixed_precision_trains_and_the_loss_on_one_batch_falls(pytorch):
    answer = torchrun(pytorch, 1, precision="amp", iterations=10)
    assert answer.returncode == 0, answer.stdout
    _, steps = step_log(answer.stdout)
    losses = [step["loss"] for step in steps]
    assert losses[-1] < losses[0] / 2


def test_the_images_of_the_folder_can_be_trained_on(pytorch, images):
    answer = alone(pytorch, input="folder", data=images, iterations=2)
    assert answer.returncode == 0, answer.stdout


def test_another_model_is_refused(pytorch):
    other = "from functools import partial; train.ResNet50 = partial(train.ResNet50, classes=999)"
    answer = alone(pytorch, before=other)
    assert answer.returncode == 1
    assert ":::REFUSED rank 0: the model has 25554983 parameters" in answer.stdout


def test_a_loss_that_is_not_finite_is_refused(pytorch):
    answer = alone(pytorch, before="steplog.learning_rate = lambda batch: 1e30")
    assert answer.returncode == 1
    assert ":::REFUSED rank 0: the loss at iteration 2 is nan" in answer.stdout


def test_a_batch_that_memory_cannot_hold_is_said_to_be_so(pytorch):
    limit = "import resource; resource.setrlimit(resource.RLIMIT_AS, (16 << 30, 16 << 30))"
    answer = alone(pytorch, before=limit, batch_size=10_000_000)
    assert answer.returncode == 1
    assert ":::OOM rank 0: " in answer.stdout


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"loss_scale": "static"}, "--loss-scale is for float16"),
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
from data import Folder
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
import json, numpy as np, data
jpeg = open({str(path)!r}, "rb").read()
height, width = 300, 260
data._random_part = lambda *_: (100, 40, height, width)
print(json.dumps([data.random_crop(jpeg, size, np.random.default_rng(seed)).tolist()
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
    lock = load_systems()["pytorch"].lock.read_text()
    pins = dict(line.split("==") for line in lock.splitlines() if "==" in line and line[0] != "#")
    for name, version in read_environment(pytorch.environment).packages.items():
        assert version.partition("+")[0] == pins[name]
