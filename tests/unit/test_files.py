"""Files that appear whole or not at all."""

import hashlib
import resource
import signal
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reperf.files import sha256, whole_file

from tests.helpers.refusal import refused_in_one_line


def test_a_file_takes_its_name_only_at_the_end(tmp_path):
    path = tmp_path / "new" / "table.csv"
    with whole_file(path) as stream:
        stream.write("Größe\n")
        stream.flush()
        assert not path.exists()
        stream.write("and half")
    assert path.read_bytes() == "Größe\nand half".encode()
    assert list(path.parent.iterdir()) == [path]


def test_an_error_leaves_what_was_there_and_stays_what_it_was(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("old")
    with pytest.raises(FileNotFoundError), whole_file(path) as stream:
        stream.write("new")
        (tmp_path / "missing").open()
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


WRITER = """\
import sys; from reperf.files import whole_file
with whole_file(sys.argv[1]) as stream:
    stream.write('new'); stream.flush()
    print('ready', flush=True); sys.stdin.readline(); stream.write(' and living')
"""


def test_a_kill_leaves_what_was_there_and_its_rest_goes_with_the_next_writer(tmp_path):
    """A living writer keeps its own."""

    def started() -> subprocess.Popen:
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        return subprocess.Popen([sys.executable, "-c", WRITER, path], text=True, **pipes)

    path = tmp_path / "[table].csv"
    path.write_text("old")
    with started() as killed:
        killed.stdout.readline()
        killed.kill()
    assert killed.returncode == -signal.SIGKILL
    assert path.read_text() == "old"
    with started() as living:
        living.stdout.readline()
        (left,) = {*tmp_path.iterdir()} - {path}
        assert left.name == f".{path.name}.{living.pid}.partial"
        with whole_file(path) as stream:
            stream.write("next")
        assert sorted(tmp_path.iterdir()) == sorted([left, path])
        assert path.read_text() == "next"
        living.communicate("go on\n")
    assert (living.returncode, path.read_text()) == (0, "new and living")
    assert list(tmp_path.iterdir()) == [path]


def test_a_disk_that_takes_no_more_is_one_line_and_leaves_nothing(tmp_path):
    path = tmp_path / "table.csv"
    former = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, former[1]))
    try:
        with (
            refused_in_one_line(f"{path}: cannot be written: File too large"),
            whole_file(path) as s,
        ):
            s.write("x" * 100_000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, former)
    assert list(tmp_path.iterdir()) == []


def test_a_place_that_holds_no_file_is_one_line(tmp_path):
    (tmp_path / "file").write_text("no folder")
    for path in (tmp_path / "file" / "table.csv", tmp_path):
        with refused_in_one_line(f"{path}: cannot be written"), whole_file(path):
            pass


@given(content=st.binary(max_size=1000))
def test_the_digest_is_that_of_the_bytes(tmp_path_factory, content):
    path = tmp_path_factory.mktemp("file") / "file"
    path.write_bytes(content)
    assert sha256(path) == hashlib.sha256(content).hexdigest()
