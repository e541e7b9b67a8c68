"""Build the site out of README and pages; a link that leads nowhere fails."""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urlsplit

from markdown_it import MarkdownIt

PAGES = (
    *("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "docs/*.md"),
    *("benchmarks/README.md", "data/*/README.md"),
)


def linked_files(page: Path) -> Iterator[Path]:
    """The files, other than pages, that a page links to or shows."""
    for token in MarkdownIt("commonmark").enable("table").parse(page.read_text(encoding="utf-8")):
        for part in token.children or ():
            link = urlsplit(str(part.attrs.get("href") or part.attrs.get("src") or ""))
            target = (page.parent / unquote(link.path)).resolve()
            if link.path and not link.scheme and target.suffix != ".md":
                yield target


def build(root: Path) -> int:
    """Build site/html; returns the status of zensical, which says what is wrong."""
    pages = sorted(page for pattern in PAGES for page in root.glob(pattern))
    copied = {
        root / "docs/iframe-worker.js",
        *pages,
        *(file for page in pages for file in linked_files(page)),
    }
    shutil.rmtree(root / "site", ignore_errors=True)
    for file in copied:
        place = root / "site/pages" / file.relative_to(root)
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, place)
    built = [sys.executable, "-m", "zensical", "build", "--strict", "--clean"]
    return subprocess.run(built, cwd=root, check=False).returncode


if __name__ == "__main__":
    sys.exit(build(Path(__file__).resolve().parents[1]))
