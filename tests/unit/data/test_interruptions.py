"""Conversions that are cut short: whatever happens, a file with a final name is whole."""

import os
import re
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from reperf.errors import ReperfError

from tests.unit.data import record_readers
from tests.unit.data.pictures import make_set
from tests.unit.data.sets import content, convert, small

CONVERT = """
import sys
from pathlib import Path
from reperf.data.images import convert as conversion
from reperf.data.images import Images
from reperf.errors import ReperfError
images, output, format_name, *held = sys.argv[1:]
read_image = conversion.read_image
def read_or_wait(path, *rest):
    if path in held:
        Path(held[1]).read_bytes()  # a pipe that nobody writes
    return read_image(path, *rest)
conversion.read_image = read_or_wait
try:
    settings = Images(images=images, parts=2, seed=3)
    settings.convert(Path(output), format_name, workers=2)
except ReperfError as error:
    sys.exit(f"reperf: {error}")
"""


def start(
    images: Path, output: Path, format_name: str = "tfrecord", *held: Path, **options
) -> subprocess.Popen:
    """Begin a conversion in a process of its own; `held` is an image, and a pipe to wait for."""
    command = [sys.executable, "-c", CONVERT, images, output, format_name, *held]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True, **options)


def lives(process: psutil.Process) -> bool:
    """Whether a process does more than wait to be buried by its new parent."""
    return process.is_running() and process.status() != psutil.STATUS_ZOMBIE


def wait_until(condition) -> None:
    deadline = time.monotonic() + 240
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.fixture
def images(tmp_path):
    return make_set(tmp_path / "images", n01=20, n02=20)


@pytest.fixture
def stuck(images, tmp_path):
    """A conversion of two parts, of which one waits half way for an image that does not come."""
    os.mkfifo(tmp_path / "pipe")
    held = images / "train" / "n01" / "n01_0.JPEG", tmp_path / "pipe"
    process = start(images, tmp_path / "out", "tfrecord", *held, start_new_session=True)
    # The part that holds the pipe stays partial; the other one takes its name, its index before it.
    wait_until(lambda: any((tmp_path / "out").glob("part-?????")))
    wait_until(lambda: len(content(tmp_path / "out")) == 4)
    yield process
    process.kill()
    process.communicate()


@pytest.mark.parametrize(
    ("kill", "number"),
    [(os.killpg, signal.SIGKILL), (os.kill, signal.SIGKILL), (os.kill, signal.SIGTERM)],
)
def test_after_a_kill_of_all_or_the_first_process_all_end_and_only_whole_parts_have_names(
    stuck, images, tmp_path, kill, number
):
    workers = psutil.Process(stuck.pid).children()
    assert len(workers) == 2
    kill(stuck.pid, number)
    stuck.wait()
    wait_until(lambda: not any(map(lives, workers)))
    (part,) = (tmp_path / "out").glob("part-?????")
    assert len(record_readers.tfrecords(part.read_bytes())) == 20
    assert not (tmp_path / "out" / "manifest.json").exists()
    # A conversion in the same place leaves nothing of the one that was killed.
    for folder in ("out", "clean"):
        convert(small("images", images, parts=2), tmp_path / folder, workers=2)
    assert content(tmp_path / "out") == content(tmp_path / "clean")


@pytest.mark.parametrize("ends", ["Ctrl-C", "a worker"])
def test_an_interrupted_conversion_or_one_without_a_worker_ends_all_and_leaves_nothing(
    stuck, tmp_path, ends
):
    workers = psutil.Process(stuck.pid).children()
    if ends == "Ctrl-C":
        os.killpg(stuck.pid, signal.SIGINT)
        wanted = r"(?s).*Traceback.*\nKeyboardInterrupt\n"
    else:
        workers[0].kill()
        wanted = "reperf: a worker process was killed; memory may have run out\n"
    _, said = stuck.communicate(timeout=240)
    assert re.fullmatch(wanted, said)
    assert not any(map(lives, workers))
    assert content(tmp_path / "out") == {}


def test_a_file_size_limit_is_said_in_one_line_and_leaves_nothing_half_written(images, tmp_path):
    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (16_384, 16_384))

    process = start(images, tmp_path / "out", preexec_fn=limit)
    _, said = process.communicate(timeout=240)
    assert process.returncode == 1
    (line,) = [line for line in said.splitlines() if not line.startswith("images to")]
    assert line.startswith(f"reperf: {tmp_path}/out/part-0000")
    assert line.endswith(": cannot be written: File too large")
    assert content(tmp_path / "out") == {}


def test_a_folder_that_cannot_be_written_is_said_in_one_line(images, tmp_path):
    (tmp_path / "out").write_text("a file where the folder should be")
    with pytest.raises(ReperfError, match=r"out/part-0000.: cannot be written: File exists"):
        convert(small("images", images, parts=2), tmp_path / "out", "ofrecord", workers=2)
