"""Links of README and pages: what they name is there, the heading too."""

import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from markdown_it import MarkdownIt
from markdown_it.token import Token
from reperf.layout import ROOT

FOLDERS = (".", "docs", "benchmarks", "data/published")
PAGES = sorted(page for folder in FOLDERS for page in ROOT.joinpath(folder).glob("*.md"))


def tokens(page: Path) -> list[Token]:
    return MarkdownIt("commonmark").enable("table").parse(page.read_text(encoding="utf-8"))


def links(page: Path) -> Iterator[str]:
    """Where the links and the images of a page lead."""
    for inline in (part for token in tokens(page) for part in token.children or ()):
        if inline.type in ("link_open", "image"):
            yield inline.attrs.get("href") or inline.attrs["src"]


def anchors(page: Path) -> set[str]:
    """The names of a page's headings, as GitHub makes them."""
    found: dict[str, int] = {}
    parts = tokens(page)
    for opening, heading in pairwise(parts):
        if opening.type == "heading_open":
            words = "".join(
                part.content for part in heading.children if part.type in ("text", "code_inline")
            )
            name = re.sub(r"[^\w\- ]", "", words.lower()).replace(" ", "-")
            found[name] = found.get(name, -1) + 1
    return {f"{name}-{n}" if n else name for name, most in found.items() for n in range(most + 1)}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_what_a_page_links_to_is_there(page):
    missing = []
    for link in links(page):
        parts = urlsplit(link)
        if parts.scheme or parts.netloc:
            continue
        target = page.parent / unquote(parts.path) if parts.path else page
        there = target.exists() and target.resolve().is_relative_to(ROOT)
        named = not parts.fragment or (target.suffix == ".md" and parts.fragment in anchors(target))
        if not (there and named):
            missing.append(link)
    assert not missing


def test_the_readme_leads_to_every_page():
    linked = {link.partition("#")[0] for link in links(ROOT / "README.md")}
    assert {f"docs/{page.name}" for page in ROOT.glob("docs/*.md")} <= linked
