"""Text to parts of ids, and the samples that ranks read of them."""

import json
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
import tokenizers
from reperf.data.tokens import stream
from reperf.data.tokens.convert import convert
from reperf.data.tokens.embedded import make as make_text
from reperf.data.tokens.manifest import TokenManifest, TokenSettings
from reperf.data.tokens.vocabulary import END, read_vocabulary
from reperf.errors import ReperfError
from trainers.contract.steplog import Refused
from trainers.inputs.tokens import Tokens

PARTS = 4
SHAPE = {"context": 16, "vocabulary": 257}
LETTERS = "".join(f"Grüße, {number} 🦜 times.\n" for number in range(400))
DOCUMENTS = [LETTERS[:3000] + "\n", "One line.\n", LETTERS[3000:]]
TEXT = f"{END}\n".join(DOCUMENTS)


def settings(text: Path, bpe: Path | None = None, **changes) -> TokenSettings:
    usual = {"bpe": bpe and str(bpe), "parts": PARTS, "seed": 1}
    return TokenSettings(tokens=str(text), **usual | changes)


@pytest.fixture
def text(tmp_path) -> Path:
    (tmp_path / "text.txt").write_text(TEXT)
    return tmp_path / "text.txt"


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


def ids_in(folder: Path) -> list[np.ndarray]:
    kind = f"<u{int(TokenManifest.read(folder / 'manifest.json').type[4:]) // 8}"
    return [np.fromfile(path, kind) for path in sorted(folder.glob("part-?????"))]


def content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()} if folder.exists() else {}


@pytest.mark.parametrize("piece", [700, 1 << 20])
def test_bytes_and_ends_of_documents_are_the_stream_however_it_is_cut(
    text, tmp_path, monkeypatch, piece
):
    monkeypatch.setattr(stream, "PIECE", piece)
    manifest = convert(settings(text), tmp_path / "ids", "ids", workers=1)
    wanted = [one for document in DOCUMENTS for one in [*document.encode(), 256]]
    parts = ids_in(tmp_path / "ids")
    assert np.concatenate(parts).tolist() == wanted
    assert [len(ids) for ids in parts] == [part.tokens for part in manifest.parts]
    assert max(map(len, parts)) - min(map(len, parts)) < 100
    assert (manifest.documents, manifest.tokens) == (3, len(wanted))
    assert (manifest.type, manifest.vocabulary, manifest.end) == ("uint16", 257, 256)
    for number, ids in enumerate(parts):
        lines = np.loadtxt(tmp_path / f"ids/part-{number:05d}.idx", int, ndmin=2)
        assert np.array_equal(lines[:, 0], np.cumsum(lines[:, 1]) - lines[:, 1])
        assert lines[:, 1].sum() == ids.nbytes


def test_the_bytes_do_not_depend_on_the_number_of_workers(text, tmp_path, bpe, monkeypatch):
    monkeypatch.setattr(stream, "PIECE", 700)
    for workers in (1, 3):
        convert(settings(text, bpe), tmp_path / str(workers), "ids", workers=workers)
    assert content(tmp_path / "1") == content(tmp_path / "3")


def test_a_folder_is_all_its_files_in_order_each_a_document(tmp_path):
    for name, written in {"b/2": "zwei\n", "a": "\ufeffeins\n", ".hidden": "null", "c": ""}.items():
        (tmp_path / "own" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "own" / name).write_text(written)
    convert(settings(tmp_path / "own", parts=1), tmp_path / "ids", "ids", workers=1)
    assert ids_in(tmp_path / "ids")[0].tolist() == [*b"eins\n", 256, *b"zwei\n", 256]


def test_byte_pairs_are_those_of_the_library_that_has_gpt2s_own(text, tmp_path, bpe):
    manifest = convert(settings(text, bpe, parts=1), tmp_path / "ids", "ids", workers=1)
    of_others = tokenizers.ByteLevelBPETokenizer(str(bpe / "vocab.json"), str(bpe / "merges.txt"))
    end = of_others.token_to_id(END)
    wanted = [one for document in DOCUMENTS for one in [*of_others.encode(document).ids, end]]
    assert ids_in(tmp_path / "ids")[0].tolist() == wanted
    assert len(wanted) < len(TEXT.encode())
    assert (manifest.vocabulary, manifest.end) == (600, end)
    assert manifest.is_of(settings(text, bpe, parts=1))


def test_a_set_of_another_vocabulary_in_the_same_place_is_another(text, tmp_path, bpe):
    own = tmp_path / "own"
    own.mkdir()
    for name in ("vocab.json", "merges.txt"):
        (own / name).write_bytes((bpe / name).read_bytes())
    manifest = convert(settings(text, own), tmp_path / "ids", "ids", workers=1)
    assert manifest.is_of(settings(text, own))
    (own / "merges.txt").write_text("#version: 0.2\n")
    assert not manifest.is_of(settings(text, own))
    (own / "merges.txt").unlink()  # what is converted needs it no longer
    assert manifest.is_of(settings(text, own))


def test_ids_beyond_16_bits_have_32(text, tmp_path, bpe):
    ids = json.loads((bpe / "vocab.json").read_text())
    last = 70_000 - 1
    more = {f"unused {number}": number for number in range(len(ids), last)}
    ids = ids | more | {END: last, "unused": ids[END]}
    (tmp_path / "vocab.json").write_text(json.dumps(ids))
    (tmp_path / "merges.txt").write_bytes((bpe / "merges.txt").read_bytes())
    manifest = convert(settings(text, tmp_path), tmp_path / "ids", "ids", workers=1)
    assert manifest.type == "uint32"
    assert np.concatenate(ids_in(tmp_path / "ids"))[-1] == last
    (_, following), *_ = batches(tmp_path / "ids", vocabulary=last + 1)
    assert following.max() <= last


@pytest.mark.parametrize(
    ("written", "fault"),
    [
        (b"", r"text.txt: an empty text; allowed: text in UTF-8, with a line <\|endoftext\|> "),
        (b"good\n" * 99 + b"\xff\n", r"text.txt: byte 495: got b'\\xff'; allowed: text in UTF-8"),
        (b"all in one line", r"text.txt: part 1 of 4 would hold no text; allowed: at least a line"),
    ],
)
def test_a_text_that_cannot_be_converted_leaves_nothing(tmp_path, written, fault):
    own = tmp_path / "text.txt"
    own.write_bytes(written)
    with pytest.raises(ReperfError, match=fault):
        convert(settings(own), tmp_path / "ids", "ids", workers=1)
    assert content(tmp_path / "ids") == {}


@pytest.mark.parametrize(
    ("name", "written", "fault"),
    [
        ("vocab.json", None, r"vocab.json: no such file; allowed: a folder that holds vocab.json "),
        ("vocab.json", "[", "vocab.json: is no JSON; allowed: tokens and their ids"),
        ("vocab.json", '{"a": "b"}', "vocab.json: is no vocabulary; allowed: tokens and"),
        ("vocab.json", '{"a": 1, "b": 1}', "vocab.json: an id has several tokens; allowed: one"),
        ("vocab.json", '{"a": 3}', "vocab.json: has 1 tokens and the id 3; allowed: all ids from"),
        ("vocab.json", '{"a": 0}', r"vocab.json: has no <\|endoftext\|>; allowed: a vocabulary"),
        (
            "merges.txt",
            "#version: 0.2\na b c\n",
            "merges.txt: got 'a b c'; allowed: two tokens of ",
        ),
        ("merges.txt", "Q Q\n", "merges.txt: got 'Q Q'; allowed: two tokens of vocab.json that"),
    ],
)
def test_a_vocabulary_that_cannot_encode_is_refused(tmp_path, bpe, name, written, fault):
    for one in ("vocab.json", "merges.txt"):
        (tmp_path / one).write_bytes((bpe / one).read_bytes())
    if written is None:
        (tmp_path / name).unlink()
    else:
        (tmp_path / name).write_text(written)
    with pytest.raises(ReperfError, match=fault):
        read_vocabulary(tmp_path)


def test_a_vocabulary_that_would_lose_text_is_refused(tmp_path, bpe):
    ids = json.loads((bpe / "vocab.json").read_text())
    lost = {"longer" if token == "A" else token: number for token, number in ids.items()}
    (tmp_path / "vocab.json").write_text(json.dumps(lost))
    (tmp_path / "merges.txt").write_text("")
    with pytest.raises(ReperfError, match=r"vocab.json: lacks 1 of the 256 tokens of one byte; "):
        read_vocabulary(tmp_path)


@pytest.fixture
def converted(text, tmp_path) -> Path:
    convert(settings(text), tmp_path / "ids", "ids", workers=1)
    return tmp_path / "ids"


def batches(folder: Path, number=1, rank=0, ranks=1, size=3, **shape):
    return list(islice(Tokens(folder, SHAPE | shape, size, rank, ranks), number))


def windows(parts) -> set[bytes]:
    """All samples that parts hold, with the token behind each."""
    return {
        ids[first : first + 17].astype(np.int64).tobytes()
        for ids in parts
        for first in range(0, len(ids) - 16, 16)
    }


def seen(batch) -> list[bytes]:
    tokens, following = batch
    assert tokens.dtype == following.dtype == np.int64
    assert np.array_equal(tokens[:, 1:], following[:, :-1])
    return [row.tobytes() for row in np.hstack([tokens, following[:, -1:]])]


def test_readers_share_all_samples_and_read_them_again_in_another_order(converted):
    parts = ids_in(converted)
    for rank in (0, 1):
        own = parts[2 * rank : 2 * rank + 2]
        count = sum((len(ids) - 1) // 16 for ids in own)
        read = [one for batch in batches(converted, count, rank, 2, 2) for one in seen(batch)]
        first, second = read[:count], read[count:]
        assert set(first) == set(second) == windows(own)
        assert first != second
        assert sorted(first) == sorted(second)
        assert read[:6] == [one for b in batches(converted, 3, rank, 2, 2) for one in seen(b)]


def test_the_seed_of_the_set_gives_the_order(converted, text, tmp_path):
    convert(settings(text, seed=2), tmp_path / "other", "ids", workers=1)
    assert seen(batches(converted)[0]) != seen(batches(tmp_path / "other")[0])


@pytest.mark.parametrize(
    ("shape", "ranks", "fault"),
    [
        ({"vocabulary": 200}, 1, r"part-0000\d at byte \d+: got id 2\d\d; allowed: below 200, the"),
        (
            {"context": 9999},
            2,
            "rank 0 has parts of up to .* tokens; allowed: 10000 or more in ",
        ),
        ({}, 3, "4 parts for 3 ranks; allowed: a multiple of them"),
    ],
)
def test_what_a_reader_cannot_read_is_refused_in_one_line(converted, shape, ranks, fault):
    with pytest.raises(Refused, match=fault):
        batches(converted, 200, ranks=ranks, **shape)


def test_a_part_that_is_cut_and_a_folder_of_others_are_refused(converted):
    part = converted / "part-00001"
    part.write_bytes(part.read_bytes()[:-1])
    with pytest.raises(Refused, match=r"part-00001: has \d+ bytes; allowed: whole ids of 2"):
        batches(converted)
    (converted / "manifest.json").write_text('{"type": "float16"}')
    with pytest.raises(Refused, match=r"manifest.json: is no manifest of tokens; allowed: a "):
        batches(converted)
