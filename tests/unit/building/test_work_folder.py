"""One workflow at a time works in a folder, and others are told which."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from reperf.building.work_folder import check_folder, lock_folder
from reperf.errors import ReperfError

from tests.helpers.refusal import cannot_run, refused_in_one_line

USER = (
    "import sys, time; from reperf.building.work_folder import lock_folder\n"
    "lock_folder(sys.argv[1]); print('ready', flush=True); time.sleep(60)\n"
)


def run_apart(code: str, *arguments: object) -> subprocess.Popen:
    """Run some code in a process of its own."""
    command = [sys.executable, "-c", code, *map(str, arguments)]
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    return subprocess.Popen(command, **pipes, text=True)


def as_another_user(folder: Path, code: str) -> str:
    """What refuses some code that runs in a folder, as a user who owns nothing."""
    if os.geteuid() != 0:
        cannot_run("root, who can become another user")
    whole = (
        "import os, sys; from pathlib import Path\n"
        "from reperf.errors import ReperfError; from reperf.building.work_folder import *\n"
        "os.chdir(sys.argv[1]); os.setgid(65534); os.setuid(65534)\n"
        f"try: {code}\n"
        "except ReperfError as error: print(error)\n"
    )
    with run_apart(whole, folder) as process:
        said, trouble = process.communicate()
    assert not trouble
    return said.strip()


@pytest.mark.parametrize("closed", ["", ".snakemake"])
def test_a_folder_of_another_user_is_refused_and_ones_own_will_do(closed, tmp_path):
    (tmp_path / ".snakemake").mkdir(mode=0o755)
    check_folder(tmp_path)
    tmp_path.chmod(0o777 if closed else 0o755)
    said = as_another_user(tmp_path, "check_folder(Path())")
    where = tmp_path / closed
    assert said == f"{where}: not writable; allowed: a folder that you may write to"


@pytest.mark.parametrize("name", ["a:b", "a\nb"])
def test_a_name_that_no_list_of_folders_can_have_is_one_line(name, tmp_path):
    with pytest.raises(ReperfError, match="in the path of the work folder; allowed: none"):
        check_folder(tmp_path / name)


@pytest.mark.parametrize("left", [b"", b"\xff" * 100], ids=["nothing", "what was left"])
def test_a_locked_folder_names_its_user_others_are_free_and_a_kill_unlocks_it(tmp_path, left):
    (tmp_path / ".reperf-in-use").write_bytes(left)
    with run_apart(USER, tmp_path) as user:
        assert user.stdout.readline() == "ready\n"
        with pytest.raises(ReperfError, match=f"in use by process {user.pid} on .*; allowed: one"):
            lock_folder(tmp_path)
        (tmp_path / "other").mkdir()
        with run_apart(USER, tmp_path / "other") as other:
            assert other.stdout.readline() == "ready\n"
            other.kill()
        user.kill()
    with run_apart(USER, tmp_path) as successor:
        assert successor.stdout.readline() == "ready\n"
        successor.kill()


def test_a_lock_that_cannot_be_written_is_one_line(tmp_path, new_disk):
    disk = new_disk("4k")
    (disk / "all of it").write_bytes(bytes(4096))
    (tmp_path / ".reperf-in-use").mkdir()
    can = "; allowed: a file that you may write to, or none"
    for folder, why in (
        (tmp_path, f"Is a directory{can}"),
        (disk, f"No space left on device{can}"),
    ):
        with refused_in_one_line(f"{folder}/.reperf-in-use: cannot be written: {why}"):
            lock_folder(folder)
