"""The documents of a text, found without holding them, and read a chunk at a time."""

import codecs
import json
import os
import re
import stat
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from reperf.data.pieces import not_utf8, read_piece
from reperf.data.text.sentences import sentences_of
from reperf.errors import ReperfError
from reperf.files import reading

UTF8 = "text in UTF-8"
LAYOUT = "a sentence a line, an empty line between documents, UTF-8"
CHUNK = 1 << 20
"""Bytes of text that are converted at a time; Wikipedia's articles have some 3,000."""
LONGEST_DOCUMENT = 1 << 26
LEAST_DOCUMENTS = 2
"""In a chunk, so that the next sentence can be of another document."""

_ARTICLE = re.compile(r"^<doc [^\n]*\n?", re.MULTILINE)
_DOC = b"<doc "
_MARK = codecs.BOM_UTF8
"""Stands at the beginning of files that some editors write, and is no text."""
_HEAD = 1 << 16
"""Bytes of a file that are looked at before its documents are counted."""
_RARE_SPACES = b"\x1c\x1d\x1e\x1f\xc2\xe1\xe2\xe3"
"""First bytes of the white space that str.strip knows and bytes.strip does not."""


class _File(NamedTuple):
    path: Path
    start: int  # in the whole text
    articles: bool  # as WikiExtractor leaves them, between <doc ...> and </doc>


class Corpus:
    """A text: a file, or all files of a folder in the order of their paths.

    Eight bytes a document are held, and nothing of the text. A file begins a document.
    """

    def __init__(self, text: Path) -> None:
        """Find the documents.

        Args:
            text: a file or a folder of files. A file that begins with `<doc ` holds articles as
                WikiExtractor leaves them, any other one a sentence a line and an empty line
                between documents.

        Raises:
            ReperfError: there is no such text, it holds no documents, or one is too large.
        """
        self.text = text
        self._files: list[_File] = []
        self._starts = array("Q")
        at = 0
        for path in files_of(text):
            with reading(path):
                at = self._add(path, at)
        if not self._starts:
            raise ReperfError(f"{text}: holds no text; allowed: {LAYOUT}")
        self._starts.append(at)
        self._file_starts = [file.start for file in self._files]

    def _add(self, path: Path, start: int) -> int:
        with path.open("rb") as stream:
            head = stream.read(_HEAD)
            _check_head(path, head)
            at = first = len(_MARK) if head.startswith(_MARK) else 0
            stream.seek(at)
            lines = iter(partial(stream.readline, LONGEST_DOCUMENT), b"")
            opening = next((line for line in lines if not _is_empty(line)), b"")
            _check_opening(path, opening)
            articles = opening.startswith(_DOC)
            self._files.append(_File(path, start, articles))
            stream.seek(at)
            begins = (lambda line: line.startswith(_DOC)) if articles else _after_empty_lines()
            for line in iter(partial(stream.readline, LONGEST_DOCUMENT), b""):
                if begins(line):
                    self._starts.append(start + at)
                    first = at
                at += len(line)
                if at - first > LONGEST_DOCUMENT:
                    raise ReperfError(
                        f"{path}: byte {first}: a document of more than {LONGEST_DOCUMENT} bytes; "
                        f"allowed: {LAYOUT}"
                    )
        return start + at

    def __len__(self) -> int:
        """The number of documents."""
        return len(self._starts) - 1

    def chunks(self, parts: int) -> array:
        """Cut the text into chunks of whole documents, equally many for each part.

        Chunks are near equal in bytes, have at least LEAST_DOCUMENTS documents, and as far as that
        allows at most CHUNK bytes.

        Returns:
            The number of the first document of each chunk, and of all documents.

        Raises:
            ReperfError: there are too few documents.
        """
        if len(self) < LEAST_DOCUMENTS * parts:
            raise ReperfError(
                f"{self.text}: {len(self)} documents for {parts} parts; "
                f"allowed: at least {LEAST_DOCUMENTS} per part, an empty line between documents"
            )
        size = self._starts[-1]
        wanted = -(-size // (parts * CHUNK))
        count = parts * max(1, min(wanted, len(self) // (LEAST_DOCUMENTS * parts)))
        edges = array("Q", [0])
        for number in range(1, count):
            near = bisect_left(self._starts, size * number // count)
            least = edges[-1] + LEAST_DOCUMENTS
            most = len(self) - LEAST_DOCUMENTS * (count - number)
            edges.append(min(max(near, least), most))
        edges.append(len(self))
        return edges

    def documents(self, first: int, end: int) -> Iterator[list[str]]:
        """The sentences of each of some neighbouring documents, as far as it has any.

        Raises:
            ReperfError: a file cannot be read, has changed, or is not UTF-8.
        """
        begin, finish = self._starts[first], self._starts[end]
        at = bisect_right(self._file_starts, begin) - 1
        while at < len(self._files) and self._files[at].start < finish:
            file = self._files[at]
            at += 1
            following = self._files[at].start if at < len(self._files) else self._starts[-1]
            offset = max(begin, file.start) - file.start
            size = min(finish, following) - file.start - offset
            content = read_piece(file.path, offset, size, UTF8)
            yield from (_articles if file.articles else _documents)(content)


def check_text(text: Path, layout: str = LAYOUT) -> None:
    """Refuse a text that, at a glance, is not there.

    Args:
        text: a file or a folder.
        layout: of what it may hold, in words.

    Raises:
        ReperfError: there is no such file or folder.
    """
    if not os.path.lexists(text):
        raise ReperfError(f"{text}: no such file or folder; allowed: {layout}")


def files_of(text: Path, layout: str = LAYOUT) -> list[Path]:
    """The files of a text, in the order of their paths; see `check_text`.

    Raises:
        ReperfError: there is no such text, or it has no files, or what is none.
    """
    check_text(text, layout)
    if not text.is_dir():
        return [_regular(text, layout)]
    found = []
    seen = set()

    def refuse(error: OSError) -> None:
        raise ReperfError(f"{error.filename}: cannot be read: {error.strerror}")

    for folder, folders, names in os.walk(text, onerror=refuse, followlinks=True):
        here = _status(Path(folder))
        if (here.st_dev, here.st_ino) in seen:  # a link leads back to it
            folders.clear()
            continue
        seen.add((here.st_dev, here.st_ino))
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        found += [Path(folder, name) for name in names if not name.startswith(".")]
    if not found:
        raise ReperfError(f"{text}: holds no files; allowed: {layout}")
    return [_regular(path, layout) for path in sorted(found)]


def _regular(path: Path, layout: str) -> Path:
    if not stat.S_ISREG(_status(path).st_mode):
        raise ReperfError(f"{path}: is not a file; allowed: {layout}")
    return path


def _status(path: Path) -> os.stat_result:
    with reading(path):
        return path.stat()


def _check_head(path: Path, head: bytes) -> None:
    """Refuse what is no text before its lines are counted, which would say something else."""
    try:
        # A character at the end may be cut.
        codecs.getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError as error:
        raise not_utf8(path, 0, error, UTF8) from None


def _check_opening(path: Path, line: bytes) -> None:
    """Refuse what WikiExtractor leaves when it is asked for JSON: its keys would be words."""
    try:
        is_article = line.startswith(b"{") and "text" in json.loads(line)
    except ValueError:
        return
    if is_article:
        raise ReperfError(
            f"{path}: holds articles in JSON; allowed: WikiExtractor's <doc ...>, or {LAYOUT}"
        )


def _is_empty(line: bytes) -> bool:
    """Whether a line holds nothing, or white space of any kind."""
    rest = line.strip()
    return not rest or (rest[0] in _RARE_SPACES and not rest.decode(errors="replace").strip())


def _after_empty_lines() -> Callable[[bytes], bool]:
    """What tells for each line of a file whether a document begins with it."""
    fresh = True

    def begins(line: bytes) -> bool:
        nonlocal fresh
        was_fresh, fresh = fresh, _is_empty(line)
        return was_fresh and not fresh

    return begins


def _documents(content: str) -> Iterator[list[str]]:
    sentences: list[str] = []
    for line in content.split("\n"):
        if sentence := line.strip():
            sentences.append(sentence)
        elif sentences:
            yield sentences
            sentences = []
    if sentences:
        yield sentences


def _articles(content: str) -> Iterator[list[str]]:
    """Articles, without their titles, which are their first lines; a line is a paragraph."""
    edges = [(found.start(), found.end()) for found in _ARTICLE.finditer(content)]
    for (_, begin), (end, _) in pairwise([*edges, (len(content), 0)]):
        body = content[begin:end].partition("\n</doc>")[0].strip()
        _, _, paragraphs = body.partition("\n")
        sentences = [one for line in paragraphs.split("\n") for one in sentences_of(line)]
        if sentences:
            yield sentences
