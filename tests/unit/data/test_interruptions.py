"""Conversions that are cut short: whatever happens, a file with a final name is whole."""

import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from reperf.data.images.convert_images import convert
from reperf.errors import ReperfError

from tests.unit.data import record_readers
from tests.unit.data.pictures import make_set

CONVERT = """
import sys
from pathlib import Path
from reperf.data.images.convert_images import convert
from reperf.errors import ReperfError
from reperf.data.images import convert_images as conversion
images, output, format_name, *held = sys.argv[1:]
read_image = conversion.read_image
def read_or_wait(path, *rest):
    if path in held:
        Path(held[1]).read_bytes()  # a pipe that nobody writes
    return read_image(path, *rest)
conversion.read_image = read_or_wait
try:
    convert(Path(images), Path(output), format_name, parts=2, workers=2, seed=1)
except ReperfError as error:
    sys.exit(f"reperf: {error}")
"""


def start(
    images: Path, output: Path, format_name: str = "tfrecord", *held: Path, **options
) -> subprocess.Popen:
    """Begin a conversion in a process of its own; `held` is an image, and a pipe to wait for."""
    command = [sys.executable, "-c", CONVERT, images, output, format_name, *held]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True, **options)


def files(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()} if folder.exists() else set()


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
    wait_until(lambda: len(files(tmp_path / "out")) == 4)
    yield process
    process.kill()
    process.communicate()


def whole_parts(folder: Path) -> list[Path]:
    """The parts with a final name, each read to its end."""
    parts = sorted(folder.glob("part-?????"))
    for part in parts:
        assert len(record_readers.tfrecords(part.read_bytes())) == 20
    return parts


def finish(images: Path, tmp_path: Path) -> None:
    """Convert again where a conversion was killed, and see that nothing of it is left."""
    again = convert(images, tmp_path / "out", "tfrecord", parts=2, workers=2, seed=1)
    clean = convert(images, tmp_path / "clean", "tfrecord", parts=2, workers=2, seed=1)
    assert again == clean
    assert files(tmp_path / "out") == files(tmp_path / "clean")


def test_after_a_kill_of_all_processes_only_whole_parts_have_names(stuck, images, tmp_path):
    os.killpg(stuck.pid, signal.SIGKILL)
    stuck.wait()
    assert len(whole_parts(tmp_path / "out")) == 1
    assert "manifest.json" not in files(tmp_path / "out")
    finish(images, tmp_path)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_after_a_kill_of_the_first_process_the_others_end(stuck, images, tmp_path, number):
    workers = psutil.Process(stuck.pid).children()
    assert len(workers) == 2
    stuck.send_signal(number)
    stuck.wait()
    wait_until(lambda: not any(map(lives, workers)))
    assert len(whole_parts(tmp_path / "out")) == 1
    finish(images, tmp_path)


def test_an_interrupted_conversion_ends_its_workers_and_leaves_nothing(stuck, tmp_path):
    workers = psutil.Process(stuck.pid).children()
    os.killpg(stuck.pid, signal.SIGINT)  # as Ctrl-C does
    _, said = stuck.communicate(timeout=240)
    assert said.splitlines()[-1] == "KeyboardInterrupt"
    assert not any(map(lives, workers))
    assert files(tmp_path / "out") == set()


def test_a_killed_worker_is_said_in_one_line_and_leaves_nothing(stuck, tmp_path):
    workers = psutil.Process(stuck.pid).children()
    workers[0].kill()
    _, said = stuck.communicate(timeout=240)
    assert said == "reperf: a worker process was killed; memory may have run out\n"
    assert not any(map(lives, workers))
    assert files(tmp_path / "out") == set()


def test_a_full_disk_is_said_in_one_line_and_leaves_nothing_half_written(images, new_disk):
    disk = new_disk("64k")  # less than half of what the conversion needs
    process = start(images, disk / "out", "recordio")
    _, said = process.communicate(timeout=240)
    assert process.returncode == 1
    (line,) = [line for line in said.splitlines() if not line.startswith("images to")]
    assert line.startswith(f"reperf: {disk}/out/part-0000")
    assert line.endswith(": cannot be written: No space left on device")
    assert files(disk / "out") == set()


def test_a_file_size_limit_is_said_in_one_line_and_leaves_nothing_half_written(images, tmp_path):
    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (16_384, 16_384))

    process = start(images, tmp_path / "out", preexec_fn=limit)
    _, said = process.communicate(timeout=240)
    assert process.returncode == 1
    assert f"reperf: {tmp_path}/out/part-0000" in said
    assert said.endswith(": cannot be written: File too large\n")
    assert files(tmp_path / "out") == set()


def test_a_folder_that_cannot_be_written_is_said_in_one_line(images, tmp_path):
    (tmp_path / "out").write_text("a file where the folder should be")
    with pytest.raises(ReperfError, match=r"out/part-0000.: cannot be written: File exists"):
        convert(images, tmp_path / "out", "ofrecord", parts=2, workers=2, seed=1)
