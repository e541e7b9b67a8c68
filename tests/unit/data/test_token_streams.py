"""Text to parts of ids, and the samples that ranks read of them."""

import json
from pathlib import Path

import numpy as np
import pytest
import tokenizers
from reperf.data import text_files
from reperf.data.byte_pairs import read_vocabulary
from reperf.data.kind import Manifest
from reperf.data.text_files import END
from reperf.data.tokens.convert import make as make_text
from reperf.errors import ReperfError

from tests.unit.data.sets import batches, convert, small, write

LETTERS = "".join(f"Grüße, {number} 🦜 times.\n" for number in range(400))
DOCUMENTS = [LETTERS[:3000] + "\n", "One line.\n", LETTERS[3000:]]


@pytest.fixture(scope="module")
def text(tmp_path_factory) -> Path:
    return write(tmp_path_factory.mktemp("text") / "text.txt", f"{END}\n".join(DOCUMENTS))


@pytest.fixture(scope="module")
def bpe(tmp_path_factory) -> Path:
    """A vocabulary as GPT-2's, trained on the embedded text."""
    folder = tmp_path_factory.mktemp("bpe")
    make_text(folder / "text.txt")
    trained = tokenizers.ByteLevelBPETokenizer()
    asked = {"vocab_size": 600, "show_progress": False, "special_tokens": [END]}
    trained.train([str(folder / "text.txt")], **asked)
    trained.save_model(str(folder))
    return folder


def changed(bpe: Path, folder: Path, **files: str | None) -> Path:
    """A vocabulary of which a file is another, or None."""
    for name, file in (("vocab", "vocab.json"), ("merges", "merges.txt")):
        content = files.get(name, (bpe / file).read_bytes())
        if content is not None:
            write(folder / file, content)
    return folder


def ids_in(folder: Path) -> list[np.ndarray]:
    kind = f"<u{int(Manifest.read(folder / 'manifest.json').type[4:]) // 8}"
    return [np.fromfile(path, kind) for path in sorted(folder.glob("part-?????"))]


@pytest.mark.parametrize("piece", [700, 1 << 20])
def test_bytes_and_ends_of_documents_are_the_stream_however_it_is_cut(
    text, tmp_path, monkeypatch, piece
):
    monkeypatch.setattr(text_files, "PIECE", piece)
    manifest = convert(small("tokens", text), tmp_path)
    wanted = [one for document in DOCUMENTS for one in [*document.encode(), 256]]
    parts = ids_in(tmp_path)
    assert np.concatenate(parts).tolist() == wanted
    assert [len(ids) for ids in parts] == [part.tokens for part in manifest.parts]
    assert max(map(len, parts)) - min(map(len, parts)) < 100
    assert (manifest.documents, manifest.tokens) == (3, len(wanted))
    assert (manifest.type, manifest.vocabulary, manifest.end) == ("uint16", 257, 256)
    for number, ids in enumerate(parts):
        lines = np.loadtxt(tmp_path / f"part-{number:05d}.idx", int, ndmin=2)
        assert np.array_equal(lines[:, 0], np.cumsum(lines[:, 1]) - lines[:, 1])
        assert lines[:, 1].sum() == ids.nbytes


def test_a_folder_is_all_its_files_in_order_each_a_document(tmp_path):
    files = {"b/2": "zwei\n", "a": "\ufeffeins\n", ".hidden": "null", "c": ""}
    convert(small("tokens", write(tmp_path / "own", files), parts=1), tmp_path)
    assert ids_in(tmp_path)[0].tolist() == [*b"eins\n", 256, *b"zwei\n", 256]


def test_byte_pairs_are_those_of_the_library_that_has_gpt2s_own(text, tmp_path, bpe):
    manifest = convert(small("tokens", text, bpe=bpe, parts=1), tmp_path)
    of_others = tokenizers.ByteLevelBPETokenizer(str(bpe / "vocab.json"), str(bpe / "merges.txt"))
    end = of_others.token_to_id(END)
    wanted = [one for document in DOCUMENTS for one in [*of_others.encode(document).ids, end]]
    assert ids_in(tmp_path)[0].tolist() == wanted
    assert len(wanted) < text.stat().st_size
    assert (manifest.vocabulary, manifest.end) == (600, end)


def test_a_set_of_another_vocabulary_in_the_same_place_is_another(text, tmp_path, bpe):
    own = changed(bpe, tmp_path / "own")
    data = small("tokens", text, bpe=own)
    convert(data, tmp_path / "ids")

    def is_of() -> bool:
        return data.of_kind.lies_at(tmp_path / "ids/manifest.json")

    assert is_of()
    (own / "merges.txt").write_text("#version: 0.2\n")
    assert not is_of()
    (own / "merges.txt").unlink()  # what is converted needs it no longer
    assert is_of()


@pytest.mark.parametrize(("size", "kind"), [(1 << 16, "uint16"), ((1 << 16) + 1, "uint32")])
def test_ids_beyond_16_bits_have_32(text, tmp_path, bpe, size, kind):
    ids = json.loads((bpe / "vocab.json").read_text())
    more = {f"unused {number}": number for number in range(len(ids), size - 1)}
    ids = ids | more | {END: size - 1, "unused": ids[END]}
    data = small("tokens", text, bpe=changed(bpe, tmp_path, vocab=json.dumps(ids)))
    assert convert(data, tmp_path / "ids").type == kind
    assert np.concatenate(ids_in(tmp_path / "ids"))[-1] == size - 1
    ((_, following),) = batches("tokens", tmp_path / "ids", 1, 3, vocabulary=size)
    assert following.max() < size


@pytest.mark.parametrize(
    ("name", "written", "fault"),
    [
        ("vocab", None, "no such file; allowed: a folder that holds vocab.json and merges.txt"),
        *(
            ("vocab", written, "is not a vocabulary; allowed: JSON of tokens and their ids, 0, 1, ")
            for written in (
                "[",
                "[]",
                '{"a": "b"}',
                '{"a": [], "b": 0}',
                '{"a": 0, "b": 0}',
                '{"a": 3}',
            )
        ),
        ("vocab", '{"a": 0}', r"has no <\|endoftext\|>; allowed: a vocabulary with it"),
        ("vocab", f'{{"A": 1, "{END}": 0}}', "lacks 255 of the 256 tokens of one byte; allowed: "),
        ("merges", "a b c\n", ".* invalid at line 1; allowed: in each line two tokens of"),
        ("merges", "Q Q\n", ".* Token `QQ` out of vocabulary; allowed: in each line two"),
    ],
)
def test_a_vocabulary_that_cannot_encode_is_refused(tmp_path, bpe, name, written, fault):
    own = changed(bpe, tmp_path / "own", **{name: written})
    with pytest.raises(ReperfError, match=rf"^{own}/{name}\.\w+: {fault}"):
        read_vocabulary(own)


def windows(parts) -> set[bytes]:
    """All samples that parts hold, with the token behind each."""
    return {
        ids[first : first + 17].astype(np.int64).tobytes()
        for ids in parts
        for first in range(0, len(ids) - 16, 16)
    }


def seen(read) -> list[bytes]:
    """The samples of batches, likewise."""
    found = []
    for tokens, following in read:
        assert tokens.dtype == following.dtype == np.int64
        assert np.array_equal(tokens[:, 1:], following[:, :-1])
        found += [row.tobytes() for row in np.hstack([tokens, following[:, -1:]])]
    return found


def test_readers_share_all_samples_and_read_them_again_in_another_order(text, tmp_path):
    convert(small("tokens", text), tmp_path)
    parts = ids_in(tmp_path)
    for rank in (0, 1):
        own = parts[2 * rank : 2 * rank + 2]
        count = sum((len(ids) - 1) // 16 for ids in own)
        read = seen(batches("tokens", tmp_path, count, 2, rank=rank, ranks=2))
        first, second = read[:count], read[count:]
        assert set(first) == set(second) == windows(own)
        assert first != second
        assert sorted(first) == sorted(second)
        assert read[:6] == seen(batches("tokens", tmp_path, 3, 2, rank=rank, ranks=2))
    convert(small("tokens", text, seed=4), tmp_path)
    assert read[:6] != seen(batches("tokens", tmp_path, 3, 2, rank=rank, ranks=2))
