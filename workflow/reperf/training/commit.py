"""Which commit of reperf a run was made with."""

import os
from pathlib import Path

from reperf.programs import answer_of

_DECIDES_RUNS = ("workflow", "envs")
"""The folders in which an uncommitted file can change what runs."""

_BUILT = ("__pycache__/", "*.egg-info/")
"""What lies there but decides nothing."""


def checked_out_commit(root: Path) -> tuple[str | None, bool | None]:
    """The commit that reperf's own repository has checked out, and whether the files differ.

    A repository that happens to lie around or inside reperf's folder, for example after unpacking
    it from an archive, is not reperf's own. That one has its top in reperf's folder, and reperf's
    library in its commit.

    Args:
        root: reperf's folder, without links in its path.

    Returns:
        None and None without such a repository or git.
    """
    # The caller may be working in another repository and have told git so, as a hook does.
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("GIT_") or name.startswith("GIT_CONFIG")
    }
    # Looking must not write: neither to the index nor by starting a watcher.
    environment["GIT_OPTIONAL_LOCKS"] = "0"
    git = ["git", "-C", str(root), "-c", "core.fsmonitor=false"]
    # reperf's code runs here already, so it does not matter who owns the files.
    git += ["-c", f"safe.directory={root}"]

    look = [*git, "rev-parse", "--show-toplevel", "HEAD", "HEAD:workflow/reperf"]
    answer = answer_of(look, environment)
    if answer is None:
        return None, None
    top, commit, _ = answer.rstrip("\n").rsplit("\n", 2)
    if Path(top).resolve() != root:
        return None, None
    changed = answer_of([*git, "status", "--porcelain", "--untracked-files=no"], environment)
    # New files count even where the user's git ignores them.
    left_out = [f"--exclude={pattern}" for pattern in _BUILT]
    new = answer_of([*git, "ls-files", "--others", *left_out, "--", *_DECIDES_RUNS], environment)
    return commit, changed != "" or new != ""
