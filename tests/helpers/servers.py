"""A system with parameter servers, as docs/add-a-system.md makes one; it needs numpy alone."""

import re
from pathlib import Path

from tests.helpers.small_benchmark import ROOT

PAGES = [
    (ROOT / f"docs/add-a-{what}.md").read_text(encoding="utf-8")
    for what in ("workload", "framework", "system")
]
ON_A_SYSTEM, _, PAGES[-1] = PAGES[-1].partition("## Parameter servers")
FILE = re.compile(
    r"^`((?:workflow|reports|envs)/\S+)`:\n\n```\w+\n(.*?)^```", re.MULTILINE | re.DOTALL
)
SYSTEM = "numpy-servers"
SHAPE = {"image_size": 16}


def follow_pages(folder: Path, page: str = "".join(PAGES), *, shares: str | None = None) -> None:
    """Apply the pages to a benchmark.

    Args:
        folder: its folder.
        page: another text than theirs, whose files are written.
        shares: the system whose environment the one with servers uses; None: as the page says.
    """
    for path, content in FILE.findall(page):
        file = folder / path
        file.parent.mkdir(exist_ok=True)
        if shares and SYSTEM in path:
            content = content.replace("shares: numpy", f"shares: {shares}")  # noqa: PLW2901
        file.write_text(content, encoding="utf-8")
