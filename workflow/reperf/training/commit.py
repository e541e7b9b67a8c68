"""Which commit of reperf a run was made with."""

import os
from pathlib import Path

from reperf.programs import answer_of

_DECIDES_RUNS = ("workflow", "envs")
"""The folders in which a file that no commit holds can change what runs."""

_BUILT = ("__pycache__/", "*.egg-info/")
"""What lies there without deciding anything."""


def checked_out_commit(root: Path) -> tuple[str | None, bool | None]:
    """The commit that reperf's own repository has checked out, and whether the files differ.

    A repository that happens to lie around or in reperf's folder, as where its files were unpacked
    from an archive, is not its own: reperf's has its top in that folder and reperf's library in
    its commit.

    Args:
        root: reperf's folder, without links in its path.

    Returns:
        The commit and whether files differ; two times None where there is no such repository, or
        no git.
    """
    # Whoever calls may work in another repository, and say so to git: a hook does.
    own = {name: value for name, value in os.environ.items() if not _names_a_repository(name)}
    # To look is not to write: not into the index, and no watcher is left behind.
    own["GIT_OPTIONAL_LOCKS"] = "0"
    git = ["git", "-C", str(root), "-c", "core.fsmonitor=false"]
    # Its code runs here, so whose files they are is no question any more.
    git += ["-c", f"safe.directory={root}"]

    said = answer_of([*git, "rev-parse", "--show-toplevel", "HEAD", "HEAD:workflow/reperf"], own)
    if said is None:
        return None, None
    top, commit, _ = said.rstrip("\n").rsplit("\n", 2)
    if Path(top).resolve() != root:
        return None, None
    changed = answer_of([*git, "status", "--porcelain", "--untracked-files=no"], own)
    # Whatever the user has git ignore.
    left_out = [f"--exclude={pattern}" for pattern in _BUILT]
    new = answer_of([*git, "ls-files", "--others", *left_out, "--", *_DECIDES_RUNS], own)
    return commit, changed != "" or new != ""


def _names_a_repository(variable: str) -> bool:
    return variable.startswith("GIT_") and not variable.startswith("GIT_CONFIG")
