"""A folder that one workflow holds, and that others wait for."""

import os
from pathlib import Path

import pytest
from reperf.building.hold import check_folder, hold_folder
from reperf.errors import ReperfError

from tests.helpers.refusal import cannot_run
from tests.unit.test_files import run_apart

HOLDER = (
    "import sys, time; from reperf.building.hold import hold_folder\n"
    "hold_folder(sys.argv[1]); print('ready', flush=True); time.sleep(60)\n"
)


def as_another_user(folder: Path, code: str) -> str:
    """What refuses some code that runs in a folder, as a user who owns nothing."""
    if os.geteuid() != 0:
        cannot_run("root, who can become another user")
    whole = (
        "import os, sys; from pathlib import Path\n"
        "from reperf.errors import ReperfError; from reperf.building.hold import *\n"
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
        assert said == f"{where}: not writable; allowed: a folder that you may write to"

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
