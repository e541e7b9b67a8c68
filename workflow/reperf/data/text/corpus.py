"""The documents of a text, found without holding them, and read a chunk at a time."""

import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np
import numpy.typing as npt

from reperf.data.text_files import TextFiles, blocks_of_lines
from reperf.errors import ReperfError

LAYOUT = "a sentence a line, an empty line between documents, UTF-8"
CHUNK = 1 << 20  # bytes of text that are converted at a time; Wikipedia's articles have some 3,000
LEAST_DOCUMENTS = 2  # in a chunk, so that the next sentence can be of another document

_OPENING = re.compile(rb"\s*^<doc ", re.MULTILINE)
_ARTICLE = re.compile(rb"^<doc [^\n]*\n?", re.MULTILINE)
_HEADING = re.compile(_ARTICLE.pattern.decode(), re.MULTILINE)
# A sentence ends with a mark; a small letter after the mark shows an abbreviation. The last three
# marks are ideographic, and no space follows them.
_BETWEEN = re.compile(r"(?<=[.!?])\s+(?![a-z])|(?<=[\u3002\uff01\uff1f])")

_SPACE = b"|".join(
    chr(code).encode() for code in range(0x3001) if chr(code).isspace() and code != 10
)
_AFTER_EMPTY = re.compile(rb"\n(?:%b)*\n(?!(?:%b)*(?:\n|\Z))" % (_SPACE, _SPACE))
"""An empty line, or one of white space, before one that is not."""

Offsets = npt.NDArray[np.int64]


class Corpus:
    """A text: a file, or all files of a folder in the order of their paths; refused if it is empty.

    Memory holds eight bytes a document, and none of the text. A file begins a document. A file that
    begins with `<doc ` holds articles as WikiExtractor leaves them, any other file a sentence a
    line and an empty line between documents.
    """

    def __init__(self, text: Path) -> None:
        self.text = text
        self._files = TextFiles(text, LAYOUT)
        self._holds_articles: list[bool] = []
        starts: list[Offsets] = []
        for path, start in zip(self._files.paths, self._files.starts, strict=False):
            articles, begins = _find_documents(path)
            self._holds_articles.append(articles)
            starts.append(begins + start)
        self._starts: Offsets = np.concatenate([*starts, self._files.starts[-1:]])
        if not len(self):
            raise ReperfError(f"{text}: holds no text; allowed: {LAYOUT}")

    def __len__(self) -> int:
        """The number of documents."""
        return len(self._starts) - 1

    def chunks(self, parts: int) -> list[int]:
        """Cut the text into chunks of whole documents, equally many for each part.

        Chunks are near equal in bytes, have at least LEAST_DOCUMENTS documents, and as far as that
        allows at most CHUNK bytes. Returns the first document's number of each, and that of all.
        """
        if len(self) < LEAST_DOCUMENTS * parts:
            raise ReperfError(
                f"{self.text}: {len(self)} documents for {parts} parts; "
                f"allowed: at least {LEAST_DOCUMENTS} per part, an empty line between documents"
            )
        size = self._files.starts[-1]
        wanted = -(-size // (parts * CHUNK))
        count = parts * max(1, min(wanted, len(self) // (LEAST_DOCUMENTS * parts)))
        edges = [0]
        for number in range(1, count):
            near = int(np.searchsorted(self._starts, size * number // count))
            least = edges[-1] + LEAST_DOCUMENTS
            most = len(self) - LEAST_DOCUMENTS * (count - number)
            edges.append(min(max(near, least), most))
        return [*edges, len(self)]

    def documents(self, first: int, end: int) -> Iterator[list[str]]:
        """The sentences of each of some neighbouring documents, as far as it has any."""
        begin, finish = self._starts[[first, end]].tolist()
        for number, content in self._files.between(begin, finish):
            yield from (_articles if self._holds_articles[number] else _documents)(content)


def _find_documents(path: Path) -> tuple[bool, Offsets]:
    """Whether a file holds WikiExtractor's articles, and the offset of each of its documents."""
    articles, after_empty = False, True
    begins: list[Offsets] = []
    for at, block in blocks_of_lines(path):
        if not begins:
            articles = _OPENING.match(block) is not None
        if articles:
            in_block = [line.start() for line in _ARTICLE.finditer(block)]
        else:
            in_block, after_empty = _begins_after_empty(block, after_empty)
        begins.append(np.array(in_block, np.int64) + at)
    return articles, np.concatenate([np.zeros(0, np.int64), *begins])


def _begins_after_empty(block: bytes, after_empty: bool) -> tuple[list[int], bool]:
    """Where documents begin in a block of lines, and whether its last line is empty.

    An empty line, or nothing, precedes the block if it is `after_empty`.
    """
    before = b"\n\n" if after_empty else b"\n"
    begins = [found.end() - len(before) for found in _AFTER_EMPTY.finditer(before + block)]
    last = block[block.rfind(b"\n", 0, -1) + 1 :]
    return begins, not last.decode(errors="replace").strip()


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
    edges = [heading.span() for heading in _HEADING.finditer(content)]
    for (_, begin), (end, _) in pairwise([*edges, (len(content), 0)]):
        body = content[begin:end].partition("\n</doc>")[0].strip()
        _, _, paragraphs = body.partition("\n")
        sentences = [text for line in paragraphs.split("\n") for text in sentences_of(line)]
        if sentences:
            yield sentences


def sentences_of(paragraph: str) -> list[str]:
    """The sentences of a paragraph, without white space around them."""
    return [sentence for part in _BETWEEN.split(paragraph) if (sentence := part.strip())]
