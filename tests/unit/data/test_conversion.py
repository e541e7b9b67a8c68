"""Work in parts, also cut short: whatever happens, a file with a final name is whole."""

import os
import re
import resource
import signal
import subprocess
import sys
import time

import psutil
import pytest
from reperf.data import conversion
from reperf.data.conversion import run_parts

from tests.helpers.waiting import wait_until
from tests.helpers.written_files import write
from tests.unit.data.record_readers import messages
from tests.unit.data.sets import content, convert, images, small

CONVERT = """
import sys
from pathlib import Path
from reperf.data.images import convert as conversion
from reperf.data.images import Images
from reperf.errors import ReperfError
images, output, *held = sys.argv[1:]
read_image = conversion.read_image
def read_or_wait(path, *rest):
    if path in held:
        Path(held[1]).read_bytes()  # a pipe that nobody writes
    return read_image(path, *rest)
conversion.read_image = read_or_wait
try:
    settings = Images(images=images, parts=2, seed=3)
    settings.convert(Path(output), "tfrecord", workers=2)
except ReperfError as error:
    sys.exit(f"reperf: {error}")
"""


@pytest.mark.parametrize("workers", [1, 2, 50])
def test_results_stand_in_the_order_of_the_parts(workers, capsys):
    squares = run_parts(lambda part: part * part, 7, workers, "squares")
    assert squares == [0, 1, 4, 9, 16, 25, 36]
    assert capsys.readouterr().err.startswith("squares: 7 parts in ")


def test_a_log_gets_lines_with_the_time_left(capsys, monkeypatch):
    monkeypatch.setattr(conversion, "SECONDS_BETWEEN_LINES", 0.1)
    run_parts(lambda _: time.sleep(0.15), 3, 1, "naps")
    first, *_, last = capsys.readouterr().err.splitlines()
    assert re.fullmatch(r"naps: 1 of 3 parts, about \d+ s left", first)
    assert re.fullmatch(r"naps: 3 parts in \d+\.\d s", last)


def test_an_error_brings_its_traceback_and_ends_the_other_parts():
    def stumble_or_go_on(part):
        if part == 0:
            return {}["missing"]
        while True:
            time.sleep(0.001)

    with pytest.raises(KeyError) as caught:
        run_parts(stumble_or_go_on, 2, 2, "")
    assert "in stumble_or_go_on" in str(caught.value.__cause__)


def start(*arguments: object, **options) -> subprocess.Popen:
    """Begin a conversion in a process of its own: images, output, perhaps what to wait for."""
    command = [sys.executable, "-c", CONVERT, *arguments]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True, **options)


def lives(process: psutil.Process) -> bool:
    """Whether a process does more than wait to be buried by its new parent."""
    return process.is_running() and process.status() != psutil.STATUS_ZOMBIE


@pytest.fixture
def mine(tmp_path):
    return write(tmp_path / "images", images(n01=200, n02=200))


@pytest.fixture
def stuck(mine, tmp_path):
    """A conversion of two parts, of which one waits half way for an image that does not come."""
    os.mkfifo(tmp_path / "pipe")
    held, out = (mine / "train/n01/n01_0.JPEG", tmp_path / "pipe"), tmp_path / "out"
    process = start(mine, out, *held, start_new_session=True)
    # The part that holds the pipe stays partial; the other one takes its name, its index before it.
    wait_until(lambda: any(out.glob("part-?????")) and len(content(out)) == 4, "four files")
    yield process
    process.kill()
    process.communicate()


@pytest.mark.parametrize(
    ("kill", "number"),
    [(os.killpg, signal.SIGKILL), (os.kill, signal.SIGKILL), (os.kill, signal.SIGTERM)],
)
def test_after_a_kill_of_all_or_the_first_process_all_end_and_only_whole_parts_have_names(
    stuck, mine, tmp_path, kill, number
):
    workers = psutil.Process(stuck.pid).children()
    assert len(workers) == 2
    kill(stuck.pid, number)
    stuck.wait()
    wait_until(lambda: not any(map(lives, workers)), "the workers to end")
    (part,) = (tmp_path / "out").glob("part-?????")
    assert len(messages(part.read_bytes())) == 200
    assert not (tmp_path / "out" / "manifest.json").exists()
    # A conversion in the same place leaves nothing of the one that was killed.
    for folder in ("out", "clean"):
        convert(small("images", mine, parts=2), tmp_path / folder, workers=2)
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


@pytest.mark.parametrize("hindrance", ["File too large", "File exists"])
def test_what_cannot_be_written_is_said_in_one_line_and_nothing_is_left_half_written(
    mine, tmp_path, hindrance
):
    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (16_384, 16_384))

    out = tmp_path / "out"
    if hindrance == "File exists":
        write(out, "a file where the folder should be")
    process = start(mine, out, preexec_fn=limit if hindrance == "File too large" else None)
    _, said = process.communicate(timeout=240)
    assert process.returncode == 1
    (line,) = [line for line in said.splitlines() if not line.startswith("images to")]
    assert line.startswith(f"reperf: {out}/part-0000")
    assert line.endswith(f": cannot be written: {hindrance}")
    assert out.is_file() or content(out) == {}
