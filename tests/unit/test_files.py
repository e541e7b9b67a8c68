"""Files that appear whole or not at all, and folders that one process holds."""

import hashlib
import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusal import cannot_run
from reperf.errors import ReperfError
from reperf.files import check_folder, hold_folder, sha256, whole_file


def run_apart(code: str, *arguments: object) -> subprocess.Popen:
    """Run some code in a process of its own, which says "ready" when it is to be spoilt."""
    command = [sys.executable, "-c", code, *map(str, arguments)]
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    return subprocess.Popen(command, **pipes, text=True)


class TestWholeFile:
    def test_it_takes_its_name_only_at_the_end(self, tmp_path):
        path = tmp_path / "new" / "table.csv"
        with whole_file(path) as stream:
            stream.write("half")
            stream.flush()
            assert not path.exists()
            stream.write(" and half")
        assert path.read_text() == "half and half"
        assert list(path.parent.iterdir()) == [path]

    def test_an_error_leaves_what_was_there(self, tmp_path):
        path = tmp_path / "table.csv"
        path.write_text("old")
        with pytest.raises(KeyError), whole_file(path) as stream:
            stream.write("new")
            raise KeyError
        assert path.read_text() == "old"
        assert list(tmp_path.iterdir()) == [path]

    def test_a_kill_leaves_what_was_there(self, tmp_path):
        path = tmp_path / "table.csv"
        path.write_text("old")
        code = (
            "import sys, time; from reperf.files import whole_file\n"
            "with whole_file(sys.argv[1]) as stream:\n"
            "    stream.write('new'); stream.flush(); print('ready', flush=True); time.sleep(60)\n"
        )
        with run_apart(code, path) as process:
            process.stdout.readline()
            process.kill()
        assert process.returncode == -signal.SIGKILL
        assert path.read_text() == "old"

    def test_what_a_killed_writer_left_goes_with_the_next_one_and_a_living_one_keeps_its_own(
        self, tmp_path
    ):
        path = tmp_path / "[table].csv"
        code = (
            "import sys, time; from reperf.files import whole_file\n"
            "with whole_file(sys.argv[1]) as stream:\n"
            "    print('ready', flush=True); sys.stdin.readline(); stream.write('living')\n"
        )
        with run_apart(code, path) as killed:
            killed.stdout.readline()
            killed.kill()
        with run_apart(code, path) as living:
            living.stdout.readline()
            (left,) = tmp_path.iterdir()
            assert left.name == f".{path.name}.{living.pid}.partial"
            with whole_file(path) as stream:
                stream.write("next")
            assert sorted(tmp_path.iterdir()) == sorted([left, path])
            assert path.read_text() == "next"
            living.communicate("go on\n")
        assert living.returncode == 0
        assert path.read_text() == "living"
        assert list(tmp_path.iterdir()) == [path]

    def test_a_disk_that_takes_no_more_is_one_line_and_leaves_nothing(self, tmp_path):
        path = tmp_path / "table.csv"
        former = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, former[1]))
        try:
            with pytest.raises(ReperfError) as refusal, whole_file(path) as stream:
                stream.write("x" * 100_000)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, former)
        assert str(refusal.value) == f"{path}: cannot be written: File too large"
        assert list(tmp_path.iterdir()) == []

    def test_a_place_that_holds_no_file_is_one_line(self, tmp_path):
        (tmp_path / "file").write_text("no folder")
        for path in (tmp_path / "file" / "table.csv", tmp_path):
            with pytest.raises(ReperfError, match="cannot be written"), whole_file(path):
                pass

    def test_another_files_trouble_stays_its_own(self, tmp_path):
        with pytest.raises(FileNotFoundError), whole_file(tmp_path / "a"):
            (tmp_path / "missing").open()

    def test_text_is_utf_8_with_line_feeds(self, tmp_path):
        with whole_file(tmp_path / "a") as stream:
            stream.write("Größe\n")
        assert (tmp_path / "a").read_bytes() == "Größe\n".encode()


@given(content=st.binary(max_size=1000))
def test_the_digest_is_that_of_the_bytes(tmp_path_factory, content):
    path = tmp_path_factory.mktemp("file") / "file"
    path.write_bytes(content)
    assert sha256(path) == hashlib.sha256(content).hexdigest()


HOLDER = (
    "import sys, time; from reperf.files import hold_folder\n"
    "hold_folder(sys.argv[1]); print('ready', flush=True); time.sleep(60)\n"
)


def as_another_user(folder: Path, code: str) -> str:
    """What refuses some code that runs in a folder, as a user who owns nothing."""
    if os.geteuid() != 0:
        cannot_run("root, who can become another user")
    whole = (
        "import os, sys; from pathlib import Path\n"
        "from reperf.errors import ReperfError; from reperf.files import *\n"
        "os.chdir(sys.argv[1]); os.setgid(65534); os.setuid(65534)\n"
        f"try: {code}\n"
        "except ReperfError as error: print(error)\n"
    )
    with run_apart(whole, folder) as process:
        said, trouble = process.communicate()
    assert not trouble
    return said.strip()


class TestCheckFolder:
    def test_a_folder_of_ones_own_will_do(self, tmp_path):
        check_folder(tmp_path)

    @pytest.mark.parametrize("closed", ["", ".snakemake"])
    def test_a_folder_of_another_user_is_one_line(self, closed, tmp_path):
        (tmp_path / ".snakemake").mkdir(mode=0o755)
        tmp_path.chmod(0o777 if closed else 0o755)
        said = as_another_user(tmp_path, "check_folder(Path())")
        where = tmp_path / closed
        assert said == f"{where}: you may not write there; allowed: a folder where you may"

    @pytest.mark.parametrize("name", ["a:b", "a\nb"])
    def test_a_name_that_no_list_of_folders_holds_is_one_line(self, name, tmp_path):
        with pytest.raises(ReperfError, match="in the path of the work folder; allowed: none"):
            check_folder(tmp_path / name)


class TestHoldFolder:
    def test_a_held_folder_names_its_holder_and_a_kill_lets_go(self, tmp_path):
        with run_apart(HOLDER, tmp_path) as holder:
            holder.stdout.readline()
            with pytest.raises(ReperfError, match=f"in use by process {holder.pid}; allowed: one"):
                hold_folder(tmp_path)
            holder.kill()
        with run_apart(HOLDER, tmp_path) as successor:
            assert successor.stdout.readline() == "ready\n"
            successor.kill()

    def test_what_a_holder_left_does_not_matter(self, tmp_path):
        (tmp_path / ".reperf-in-use").write_bytes(b"\xff" * 100)
        with run_apart(HOLDER, tmp_path) as holder:
            assert holder.stdout.readline() == "ready\n"
            with pytest.raises(ReperfError, match=f"in use by process {holder.pid}; allowed: one"):
                hold_folder(tmp_path)
            holder.kill()

    def test_a_folder_where_the_name_is_taken_is_one_line(self, tmp_path):
        lock = tmp_path / ".reperf-in-use"
        lock.mkdir()
        with pytest.raises(ReperfError) as refusal:
            hold_folder(tmp_path)
        said = "cannot be written: Is a directory; allowed: a file that you may write to, or none"
        assert str(refusal.value) == f"{lock}: {said}"

    @pytest.mark.parametrize("others", ["file", "folder"])
    def test_what_belongs_to_another_user_is_one_line(self, others, tmp_path):
        said = as_another_user(tmp_path, "hold_folder('.')")
        assert said.startswith(f"{tmp_path}/.reperf-in-use: cannot be written: Permission denied")

    def test_a_disk_that_takes_no_more_is_one_line(self, new_disk):
        disk = new_disk("4k")
        (disk / "all of it").write_bytes(bytes(4096))
        with pytest.raises(ReperfError, match=r"reperf-in-use: cannot be written: No space left"):
            hold_folder(disk)

    def test_two_folders_are_held_apart(self, tmp_path):
        for name in ("a", "b"):
            (tmp_path / name).mkdir()
        with run_apart(HOLDER, tmp_path / "a") as one, run_apart(HOLDER, tmp_path / "b") as other:
            assert one.stdout.readline() == other.stdout.readline() == "ready\n"
            one.kill()
            other.kill()
