"""Which commit a run is said to be made with: real repositories, in all the places they can lie."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from reperf.training.commit import checked_out_commit

from tests.helpers.refusal import cannot_run

NOBODY = 65534


@pytest.fixture(autouse=True)
def git_is_here(monkeypatch):
    if not shutil.which("git"):
        cannot_run("git, which a package of that name installs")
    for role in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{role}_NAME", "somebody")
        monkeypatch.setenv(f"GIT_{role}_EMAIL", "somebody@example.org")


def git(folder: Path, *arguments: str) -> str:
    answer = subprocess.run(
        ["git", "-C", str(folder), *arguments], check=True, capture_output=True, text=True
    )
    return answer.stdout.strip()


def unpack(folder: Path) -> Path:
    """reperf's files, as an archive of them holds them."""
    for name in ("workflow/reperf/machine.py", "envs/pytorch.txt", "README.md"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("as released\n")
    return folder


def commit_all(folder: Path) -> str:
    git(folder, "init", "--quiet")
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "--message", "all")
    return git(folder, "rev-parse", "HEAD")


@pytest.fixture
def others(tmp_path) -> Path:
    """Somebody's own repository."""
    folder = tmp_path / "others"
    folder.mkdir()
    (folder / "thesis.tex").write_text("...")
    commit_all(folder)
    return folder


def test_a_clone_says_its_commit(tmp_path):
    commit = commit_all(unpack(tmp_path / "reperf"))
    assert checked_out_commit(tmp_path / "reperf") == (commit, False)


def test_files_unpacked_outside_any_repository_have_no_commit(tmp_path):
    assert checked_out_commit(unpack(tmp_path / "reperf")) == (None, None)


def test_files_unpacked_inside_another_repository_do_not_take_its_commit(others):
    assert checked_out_commit(unpack(others / "tools/reperf")) == (None, None)


def test_files_that_another_repository_has_taken_in_do_not_take_its_commit(others):
    unpack(others / "tools/reperf")
    commit_all(others)
    assert checked_out_commit(others / "tools/reperf") == (None, None)


def test_files_unpacked_over_another_repository_do_not_take_its_commit(others):
    assert checked_out_commit(unpack(others)) == (None, None)


def test_files_unpacked_inside_a_git_folder_do_not_take_its_commit(others):
    assert checked_out_commit(unpack(others / ".git/reperf")) == (None, None)


def test_a_repository_without_a_commit_has_none(tmp_path):
    git(unpack(tmp_path / "reperf"), "init", "--quiet")
    assert checked_out_commit(tmp_path / "reperf") == (None, None)


def test_a_worktree_says_its_own_commit(tmp_path):
    first = commit_all(unpack(tmp_path / "reperf"))
    git(tmp_path / "reperf", "commit", "--quiet", "--allow-empty", "--message", "more")
    git(tmp_path / "reperf", "worktree", "add", "--quiet", str(tmp_path / "older"), first)
    assert checked_out_commit(tmp_path / "older") == (first, False)


def test_a_submodule_says_its_own_commit(tmp_path, others):
    commit = commit_all(unpack(tmp_path / "reperf"))
    command = ["-c", "protocol.file.allow=always", "submodule", "--quiet", "add"]
    git(others, *command, str(tmp_path / "reperf"), "reperf")
    git(others, "commit", "--quiet", "--message", "take reperf in")
    assert checked_out_commit(others / "reperf") == (commit, False)


def test_a_repository_that_the_environment_names_is_not_asked(tmp_path, others, monkeypatch):
    commit = commit_all(unpack(tmp_path / "reperf"))
    unpacked = unpack(tmp_path / "unpacked")
    monkeypatch.setenv("GIT_DIR", str(others / ".git"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(others / ".git/index"))
    for tree in (others, unpacked):
        monkeypatch.setenv("GIT_WORK_TREE", str(tree))
        assert checked_out_commit(tmp_path / "reperf") == (commit, False)
        assert checked_out_commit(unpacked) == (None, None)


def test_a_clone_of_another_user_says_its_commit_and_what_lies_around_it_does_not(tmp_path, others):
    commit = commit_all(unpack(tmp_path / "reperf"))
    unpack(others / "reperf")
    if os.geteuid() != 0:
        cannot_run("root, who can give a folder away")
    for folder in (tmp_path / "reperf", others):
        subprocess.run(["chown", "-R", str(NOBODY), str(folder)], check=True)
    assert checked_out_commit(tmp_path / "reperf") == (commit, False)
    assert checked_out_commit(others / "reperf") == (None, None)


@pytest.mark.parametrize(
    "name", ["a b", "reperf it's", 'a "b" $HOME', "größer ☃", "{a}", "a:b", "a\nb"]
)
def test_a_clone_in_a_folder_of_any_name_says_its_commit(name, tmp_path):
    commit = commit_all(unpack(tmp_path / name))
    assert checked_out_commit(tmp_path / name) == (commit, False)


@pytest.mark.parametrize("changed", ["README.md", "workflow/reperf/machine.py", "envs/pytorch.txt"])
def test_a_changed_file_is_said(changed, tmp_path):
    commit = commit_all(unpack(tmp_path / "reperf"))
    (tmp_path / "reperf" / changed).write_text("as I like it\n")
    assert checked_out_commit(tmp_path / "reperf") == (commit, True)


@pytest.mark.parametrize("new", ["workflow/systems/torch.py", "envs/mine.txt"])
def test_a_new_file_that_can_decide_what_runs_is_said_even_if_git_is_to_ignore_it(new, tmp_path):
    commit = commit_all(unpack(tmp_path / "reperf"))
    (tmp_path / "reperf" / new).parent.mkdir(exist_ok=True)
    (tmp_path / "reperf" / new).write_text("mine\n")
    assert checked_out_commit(tmp_path / "reperf") == (commit, True)
    (tmp_path / "reperf/.git/info/exclude").write_text(f"{Path(new).name}\n")
    assert checked_out_commit(tmp_path / "reperf") == (commit, True)


@pytest.mark.parametrize(
    "built",
    [
        "results/report.md",
        ".envs/pytorch/environment.json",
        "workflow/reperf/__pycache__/machine.pyc",
        "workflow/reperf.egg-info/PKG-INFO",
    ],
)
def test_what_is_built_changes_nothing(built, tmp_path):
    commit = commit_all(unpack(tmp_path / "reperf"))
    (tmp_path / "reperf" / built).parent.mkdir(parents=True)
    (tmp_path / "reperf" / built).write_text("built\n")
    assert checked_out_commit(tmp_path / "reperf") == (commit, False)


def test_to_look_is_not_to_write(tmp_path):
    commit_all(unpack(tmp_path / "reperf"))
    index = tmp_path / "reperf/.git/index"
    before = index.read_bytes()
    (tmp_path / "reperf/README.md").touch()
    checked_out_commit(tmp_path / "reperf")
    assert index.read_bytes() == before


@pytest.mark.parametrize("there", ["nothing", "no program", "a program that fails"])
def test_without_git_there_is_no_commit(there, tmp_path, monkeypatch):
    commit_all(unpack(tmp_path / "reperf"))
    (tmp_path / "bin").mkdir()
    if there != "nothing":
        (tmp_path / "bin/git").write_text("#!/bin/sh\nexit 1\n")
    if there == "a program that fails":
        (tmp_path / "bin/git").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    assert checked_out_commit(tmp_path / "reperf") == (None, None)
