import gzip
import os
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reperf.data.text import corpus as module
from reperf.data.text.corpus import LEAST_DOCUMENTS, Corpus
from reperf.data.text.sentences import sentences_of
from reperf.errors import ReperfError

LAYOUT = "allowed: a sentence a line, an empty line between documents, UTF-8"
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


def documents(corpus: Corpus, parts: int = 1) -> list[list[str]]:
    edges = corpus.chunks(parts)
    return [one for first, end in pairwise(edges) for one in corpus.documents(first, end)]


def refusal(path) -> str:
    with pytest.raises(ReperfError) as caught:
        documents(Corpus(path))
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_line_is_a_sentence_and_an_empty_line_ends_a_document(tmp_path):
    path = tmp_path / "text.txt"
    path.write_bytes(b"\n \n One. \r\nTwo words\r\n\r\n\r\n\r\nThree\n\t\nFour\xe2\x80\xa8five")
    assert documents(Corpus(path)) == [["One.", "Two words"], ["Three"], ["Four\u2028five"]]


def test_a_folder_is_all_its_files_in_order_and_each_begins_a_document(tmp_path):
    for name, content in {
        "b/2.txt": "e",
        "b/1": "c\n\nd\n",
        "a": "a\nb\n",
        ".hidden": "no",
        ".git/x": "no",
        "b/empty": "",
        "b/blank": "\n\n \n",
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(content)
    corpus = Corpus(tmp_path)
    assert len(corpus) == 4
    assert documents(corpus) == [["a", "b"], ["c"], ["d"], ["e"]]


def test_articles_of_wikipedia_lose_titles_and_are_cut_into_sentences(tmp_path):
    (tmp_path / "AA").mkdir()
    (tmp_path / "AA" / "wiki_00").write_text(WIKI)
    (tmp_path / "plain").write_text("One.\n\nTwo.")
    corpus = Corpus(tmp_path)
    assert len(corpus) == 5
    assert documents(corpus) == [
        [
            "Anarchism is a philosophy.",
            "It is old, e.g. from then!",
            "Is it?",
            "A second paragraph.",
            "End",
        ],
        ["One sentence."],
        ["One."],
        ["Two."],
    ]


def test_what_editors_put_first_is_no_text_and_hides_no_article(tmp_path):
    mark = b"\xef\xbb\xbf"
    path = tmp_path / "text"
    path.write_bytes(mark + WIKI.encode())
    assert documents(Corpus(path))[-1] == ["One sentence."]
    path.write_bytes(mark + b"\nOne.\n\nTwo.\n")
    assert documents(Corpus(path)) == [["One."], ["Two."]]
    assert len(Corpus(path)) == 2
    path.unlink()
    path.mkdir()
    for name in "ab":
        (path / name).write_bytes(mark + b"One.\n\nTwo.\n")
    assert documents(Corpus(path)) == [["One."], ["Two."]] * 2


@pytest.mark.parametrize("space", ["\u00a0", "\u3000 \u3000", "\x1c", "\u2003\r"])
def test_a_line_of_any_white_space_is_empty(tmp_path, space):
    path = tmp_path / "text"
    path.write_text(f"「 One.\n{space}\n\u3000Two.\n{space}\n{space}\nThree.", newline="")
    corpus = Corpus(path)
    assert len(corpus) == 3
    assert documents(corpus) == [["「 One."], ["Two."], ["Three."]]


def test_folders_behind_links_are_read_once(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "b").write_text("b\n")
    (tmp_path / "text").mkdir()
    (tmp_path / "text" / "a").write_text("a\n")
    (tmp_path / "text" / "link").symlink_to("../elsewhere")
    (tmp_path / "elsewhere" / "back").symlink_to("../text")
    assert documents(Corpus(tmp_path / "text")) == [["a"], ["b"]]


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


texts = st.lists(
    st.lists(st.text("ab ", min_size=1, max_size=30), min_size=1, max_size=5), max_size=40
)


@given(texts, st.integers(1, 7), st.integers(10, 300))
def test_every_document_is_in_one_chunk_and_chunks_are_alike(tmp_path_factory, text, parts, size):
    text = [[line.strip() + "." for line in document] for document in text]
    path = tmp_path_factory.mktemp("corpus") / "text"
    path.write_text("\n\n\n".join("\n".join(document) for document in text))
    if len(text) < LEAST_DOCUMENTS * parts:
        with pytest.raises(ReperfError, match=r"documents for|holds no text"):
            Corpus(path).chunks(parts)
        return
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
    path = tmp_path / "text"
    path.write_text("\n\n".join("word " * (1 + number % 7) for number in range(5000)))
    monkeypatch.setattr(module, "CHUNK", 5000)
    corpus = Corpus(path)
    edges = corpus.chunks(3)
    assert len(edges) - 1 == 3 * -(-path.stat().st_size // 15000)
    sizes = [
        sum(len(one) for document in corpus.documents(first, end) for one in document)
        for first, end in pairwise(edges)
    ]
    assert max(sizes) < 1.05 * min(sizes)


def test_what_is_no_text_is_named(tmp_path):
    path = tmp_path / "text"
    assert refusal(path) == f"{path}: no such file or folder; {LAYOUT}"
    path.write_text("")
    assert refusal(path) == f"{path}: holds no text; {LAYOUT}"
    path.write_text("\n \n")
    assert refusal(path) == f"{path}: holds no text; {LAYOUT}"
    path.write_text("One.\nTwo.\n")
    assert refusal(path) == (
        f"{path}: 1 documents for 1 parts; allowed: at least 2 per part, an empty line between "
        "documents"
    )
    path.write_bytes(b"One.\n\ncaf\xe9.\n")
    assert refusal(path) == f"{path}: byte 9: got b'\\xe9'; allowed: text in UTF-8"
    # Before anything is said about its lines.
    path.write_bytes(gzip.compress(b"One.\n\nTwo.\n"))
    assert refusal(path) == f"{path}: byte 1: got b'\\x8b'; allowed: text in UTF-8"
    path.write_text('{"id": "1", "title": "One", "text": "One. Two."}\n' * 3)
    assert refusal(path) == (
        f"{path}: holds articles in JSON; allowed: WikiExtractor's <doc ...>, or "
        "a sentence a line, an empty line between documents, UTF-8"
    )
    path.write_text('{"text", he said}\n\n{\n')
    assert documents(Corpus(path)) == [['{"text", he said}'], ["{"]]
    path.unlink()
    path.mkdir()
    assert refusal(path) == f"{path}: holds no files; {LAYOUT}"
    os.mkfifo(path / "pipe")
    assert refusal(path) == f"{path}/pipe: is not a file; {LAYOUT}"
    (path / "pipe").unlink()
    (path / "link").symlink_to("link")
    assert refusal(path).startswith(f"{path}/link: cannot be read: Too many levels")


def test_a_document_without_an_end_is_not_held_in_memory(tmp_path):
    path = tmp_path / "text"
    path.write_text("One.\n\n")
    os.truncate(path, 1 << 40)  # of zeros
    with pytest.raises(ReperfError, match=r"byte 6: a document of more than 67108864 by"):
        Corpus(path)
