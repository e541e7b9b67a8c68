"""The documents of a text, and the chunks into which it is cut."""

import gzip
import os
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reperf.data.text import corpus as module
from reperf.data.text.corpus import LEAST_DOCUMENTS, Corpus, sentences_of
from reperf.errors import ReperfError

from tests.unit.data.sets import write

MARK = "\ufeff"
WIKI = """<doc id="12" url="https://en.example.org/wiki?curid=12" title="Anarchism">
Anarchism

Anarchism is a philosophy. It is old, e.g. from then!  Is it?

A second paragraph. End
</doc>

<doc id="13" url="" title="Nothing">
Nothing
</doc>
<doc id="14" url="" title="Autism">
Autism
One sentence.
</doc>
"""
ARTICLES = [
    [
        "Anarchism is a philosophy.",
        "It is old, e.g. from then!",
        "Is it?",
        "A second paragraph.",
        "End",
    ],
    ["One sentence."],
]


def documents(corpus: Corpus, parts: int = 1) -> list[list[str]]:
    edges = corpus.chunks(parts)
    return [one for first, end in pairwise(edges) for one in corpus.documents(first, end)]


FOLDER = {
    "b/2.txt": "e",
    "b/1": "c\n\nd\n",
    "a": "a\nb\n",
    ".hidden": "no",
    ".git/x": "no",
    "b/empty": "",
    "b/blank": "\n\n \n",
}


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        # A line is a sentence, and an empty line ends a document.
        (
            b"\n \n One. \r\nTwo words\r\n\r\n\r\n\r\nThree\n\t\nFour\xe2\x80\xa8five",
            [["One.", "Two words"], ["Three"], ["Four\u2028five"]],
        ),
        # A folder is all its files in order, and each begins a document.
        (FOLDER, [["a", "b"], ["c"], ["d"], ["e"]]),
        # Articles of Wikipedia lose their titles, and are cut into sentences.
        ({"AA/wiki_00": WIKI, "plain": "One.\n\nTwo."}, [*ARTICLES, ["One."], ["Two."]]),
        # What editors put first is no text, and hides no article.
        (MARK + WIKI, ARTICLES),
        (MARK + "\nOne.\n\nTwo.\n", [["One."], ["Two."]]),
        (dict.fromkeys("ab", MARK + "One.\n\nTwo.\n"), [["One."], ["Two."]] * 2),
    ],
)
def test_a_text_is_its_documents(written, expected, tmp_path):
    assert documents(Corpus(write(tmp_path / "text", written))) == expected


def test_documents_are_counted_and_an_article_of_a_title_alone_is_one(tmp_path):
    text = write(tmp_path / "text", {"AA/wiki_00": WIKI, "plain": MARK + "\nOne.\n\nTwo."})
    assert len(Corpus(text)) == 5


@pytest.mark.parametrize("space", ["\u00a0", "\u3000 \u3000", "\x1c", "\u2003\r"])
def test_a_line_of_any_white_space_is_empty(tmp_path, space):
    lines = f"「 One.\n{space}\n\u3000Two.\n{space}\n{space}\nThree."
    corpus = Corpus(write(tmp_path / "text", lines))
    assert len(corpus) == 3
    assert documents(corpus) == [["「 One."], ["Two."], ["Three."]]


@pytest.mark.parametrize(
    ("paragraph", "sentences"),
    [
        ("One. Two?  Three! four", ["One.", "Two?", "Three! four"]),
        ("No end", ["No end"]),
        ("3.5 is a number", ["3.5 is a number"]),
        ("一。二！三", ["一。", "二！", "三"]),  # noqa: RUF001
        ("  ", []),
    ],
)
def test_a_sentence_ends_with_its_mark(paragraph, sentences):
    assert sentences_of(paragraph) == sentences


def texts(parts: int) -> st.SearchStrategy:
    """A number of parts, and as many documents as they need, or more."""
    document = st.lists(st.text("ab ", max_size=30).map("{}.".format), min_size=1, max_size=5)
    least = LEAST_DOCUMENTS * parts
    return st.tuples(st.just(parts), st.lists(document, min_size=least, max_size=least + 30))


@given(st.integers(1, 7).flatmap(texts), st.integers(10, 300))
def test_every_document_is_in_one_chunk_and_chunks_are_alike(tmp_path_factory, asked, size):
    parts, text = asked
    text = [[line.strip() for line in document] for document in text]
    path = tmp_path_factory.mktemp("corpus") / "text"
    path.write_text("\n\n\n".join("\n".join(document) for document in text))
    corpus = Corpus(path)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "CHUNK", size)
        edges = corpus.chunks(parts)
        assert documents(corpus, parts) == text
    assert (edges[0], edges[-1]) == (0, len(text))
    assert (len(edges) - 1) % parts == 0
    sizes = [end - first for first, end in pairwise(edges)]
    assert min(sizes) >= LEAST_DOCUMENTS
    # There are more chunks, unless the documents are too few.
    wanted = path.stat().st_size / size
    assert len(sizes) >= min(wanted, len(text) / LEAST_DOCUMENTS - 2 * parts)


def test_chunks_have_near_equal_sizes(tmp_path, monkeypatch):
    text = "\n\n".join("word " * (1 + number % 7) for number in range(5000))
    monkeypatch.setattr(module, "CHUNK", 5000)
    corpus = Corpus(write(tmp_path / "text", text))
    edges = corpus.chunks(3)
    assert len(edges) - 1 == 3 * -(-len(text) // 15000)
    sizes = [
        sum(len(one) for document in corpus.documents(first, end) for one in document)
        for first, end in pairwise(edges)
    ]
    assert max(sizes) < 1.05 * min(sizes)


LAYOUT = "allowed: a sentence a line, an empty line between documents, UTF-8"


def loop(path: Path) -> None:
    path.mkdir()
    (path / "link").symlink_to("link")


def folder(path: Path) -> None:
    path.mkdir()
    (path / "link").symlink_to("..")


def pipe(path: Path) -> None:
    path.mkdir()
    os.mkfifo(path / "link")


# A function makes what is no file of some content.
@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("", f": an empty text; {LAYOUT}"),
        ("\ufeff\n \n", f": holds no text; {LAYOUT}"),
        ("One.\nTwo.\n", ": 1 documents for 1 parts; allowed: at least 2 per part, an empty line"),
        # Before anything is said about its lines.
        (b"\xff\xfeO\0\n\0", rf": byte 0: got b'\xff'; {LAYOUT}"),
        (gzip.compress(b"One.\n\nTwo.", mtime=0), f": compressed by gzip; {LAYOUT}"),
        (Path.mkdir, f": holds no files; {LAYOUT}"),
        (pipe, f"/link: is not a file; {LAYOUT}"),
        (loop, "/link: cannot be read: Too many levels"),
        (folder, f"/link: is not a file; {LAYOUT}"),
    ],
)
def test_what_is_no_text_is_named(tmp_path, written, said):
    path = tmp_path / "text"
    if callable(written):
        written(path)
    else:
        write(path, written)
    with pytest.raises(ReperfError) as refusal:
        Corpus(path).chunks(1)
    assert "\n" not in str(refusal.value)
    assert str(refusal.value).startswith(f"{path}{said}")
