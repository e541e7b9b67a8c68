"""Which commit a run is said to be made with: real repositories, in all the places they can lie."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from reperf.training.train import checked_out_commit

from tests.helpers.refusal import cannot_run

NO_COMMIT = (None, None)


def git(folder: Path, *arguments: str) -> str:
    somebody = ("-c", "user.name=somebody", "-c", "user.email=somebody@example.org")
    command = ["git", "-C", str(folder), *somebody, *arguments]
    return subprocess.check_output(command, text=True).strip()


def commit_all(folder: Path) -> str:
    git(folder, "init", "--quiet")
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "--message", "all")
    return git(folder, "rev-parse", "HEAD")


def write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def unpack(folder: Path) -> Path:
    """reperf's files, as an archive of them holds them."""
    for name in ("workflow/reperf/machine.py", "envs/pytorch.txt", "README.md"):
        write(folder / name, "as released\n")
    return folder


@pytest.fixture
def others(tmp_path) -> Path:
    """Somebody's own repository."""
    write(tmp_path / "others/thesis.tex", "...")
    commit_all(tmp_path / "others")
    return tmp_path / "others"


@pytest.fixture
def clone(tmp_path) -> Path:
    if not shutil.which("git"):
        cannot_run("git, which a package of that name installs")
    commit_all(unpack(tmp_path / "reperf"))
    return tmp_path / "reperf"


@pytest.fixture
def commit(clone) -> str:
    return git(clone, "rev-parse", "HEAD")


@pytest.mark.parametrize("place", ["alone", "others/tools/reperf", "others", "others/.git/reperf"])
def test_files_that_were_unpacked_have_no_commit_wherever_they_lie(tmp_path, others, place):
    assert checked_out_commit(unpack(tmp_path / place)) == NO_COMMIT
    if place == "others/tools/reperf":  # nor one that another repository has taken in
        commit_all(others)
        assert checked_out_commit(tmp_path / place) == NO_COMMIT


def test_a_worktree_says_its_own_commit_in_a_folder_of_any_name(tmp_path, clone, commit):
    git(clone, "commit", "--quiet", "--allow-empty", "--message", "more")
    older = tmp_path / 'größer: "it\'s" {a}\n$HOME'
    git(clone, "worktree", "add", "--quiet", str(older), commit)
    assert checked_out_commit(older) == (commit, False)


def test_a_repository_that_the_environment_names_is_not_asked(
    tmp_path, clone, commit, others, monkeypatch
):
    unpacked = unpack(tmp_path / "unpacked")
    monkeypatch.setenv("GIT_DIR", str(others / ".git"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(others / ".git/index"))
    for tree in (others, unpacked):
        monkeypatch.setenv("GIT_WORK_TREE", str(tree))
        assert checked_out_commit(clone) == (commit, False)
        assert checked_out_commit(unpacked) == NO_COMMIT


def test_a_clone_of_another_user_says_its_commit_and_what_lies_around_it_does_not(
    clone, commit, others
):
    if os.geteuid() != 0:
        cannot_run("root, who can give a folder away")
    unpack(others / "reperf")
    subprocess.run(["chown", "-R", "65534", str(clone), str(others)], check=True)
    assert checked_out_commit(clone) == (commit, False)
    assert checked_out_commit(others / "reperf") == NO_COMMIT


# New files in the first two folders can decide what runs.
DECIDE = (
    "README.md workflow/reperf/machine.py envs/pytorch.txt workflow/systems/torch.py envs/my.txt"
)
BUILT = (
    "results/report.md .envs/pytorch/environment.json workflow/reperf/__pycache__/machine.pyc "
    "workflow/reperf.egg-info/PKG-INFO"
)


@pytest.mark.parametrize(("files", "changed"), [(DECIDE, True), (BUILT, False)])
def test_a_change_is_said_even_if_git_is_to_ignore_it_and_what_is_built_is_none(
    files, changed, clone, commit
):
    for file in files.split():
        write(clone / file, "as I like it\n")
        assert checked_out_commit(clone) == (commit, changed), file
        (clone / ".git/info/exclude").write_text(f"{Path(file).name}\n")
        assert checked_out_commit(clone) == (commit, changed), file
        git(clone, "checkout", "--quiet", ".")
        git(clone, "clean", "-xdfq")


def test_to_look_is_not_to_write(clone):
    before = (clone / ".git/index").read_bytes()
    (clone / "README.md").touch()
    checked_out_commit(clone)
    assert (clone / ".git/index").read_bytes() == before


@pytest.mark.parametrize("mode", [None, 0o644, 0o755], ids=["nothing", "no program", "it fails"])
def test_without_git_there_is_no_commit(mode, tmp_path, clone, monkeypatch):
    (tmp_path / "bin").mkdir()
    if mode:
        write(tmp_path / "bin/git", "#!/bin/sh\nexit 1\n")
        (tmp_path / "bin/git").chmod(mode)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    assert checked_out_commit(clone) == NO_COMMIT
