"""How text becomes parts of words' ids."""

import re
from collections import Counter
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from reperf.data.conversion import Conversion, Counts, Format, PartWriter, run_parts
from reperf.data.text_files import UTF8, Pieces
from reperf.data.tokens.convert import make
from reperf.data.words import Words
from reperf.errors import ReperfError

__all__ = ["conversion", "make"]  # the embedded text is that of tokens

Ids = npt.NDArray[np.uint32]
IDS = Format[Ids](lambda ids: [ids.tobytes()])
"""Ids one after the other, uint32, the lowest byte first."""
WORD = re.compile(r"[^\W_]+(?:['\u2019][^\W_]+)*")
"""What a word is, in lower case: letters and digits, and an apostrophe within."""


def conversion(settings: Words, _format_name: str, workers: int) -> Conversion[Ids]:
    """Convert text to words' ids.

    A first pass counts all words. A second pass writes the words of the vocabulary as their places
    in it: the most frequent word is 0. The id after the last one ends a line. A word w with a share
    f(w) of all words of the vocabulary is kept with probability sqrt(t / f(w)) + t / f(w), t being
    `thinning`, as word2vec does.

    Source: Mikolov et al., Distributed Representations of Words and Phrases (2013), and its code.
    """
    text = Pieces(settings.source, settings.parts, UTF8)

    def count(part: int) -> Counter[str]:
        return Counter(
            word
            for number in text.of_part(part)
            for content, _ in text.documents(number)
            for word in WORD.findall(content.lower())
        )

    counts: Counter[str] = Counter()
    for of_part in run_parts(count, settings.parts, workers, "count the words"):
        counts.update(of_part)
    if not counts:
        raise ReperfError(f"{settings.source}: holds no word; allowed: text")
    by_count = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    vocabulary = {word: count for word, count in by_count if count >= settings.least_count}
    if not vocabulary:
        word, most = by_count[0]
        raise ReperfError(
            f"{settings.source}: the most frequent word, {word[:100]!r}, is there {most} times; "
            f"allowed: {settings.least_count} or more (least_count)"
        )
    end = len(vocabulary)
    ids = {word: number for number, word in enumerate(vocabulary)}
    kept = _kept([*vocabulary.values()], settings.thinning)

    def fill(part: int, records: PartWriter[Ids]) -> Counts:
        words = pairs = 0
        for number in text.of_part(part):
            in_piece = _ids(text, number, ids)
            random = np.random.RandomState([settings.seed, number])
            left = in_piece[random.random_sample(len(in_piece)) < kept[in_piece]]
            is_word = left < end
            words += int(is_word.sum())
            pairs += int((is_word[1:] & is_word[:-1]).sum())
            records.append(left.astype("<u4"))
        return {"words": words if pairs else 0}

    return Conversion(
        IDS,
        fill,
        "no line with two words; allowed: more text for each part, or a larger thinning",
        {"vocabulary": end, "words_read": counts.total(), "words_known": sum(vocabulary.values())},
        [f"{word} {count}" for word, count in vocabulary.items()],
    )


def _ids(text: Pieces, number: int, ids: dict[str, int]) -> npt.NDArray[np.int64]:
    """The ids of a piece's known words, and the end of each line."""
    in_piece: list[int] = []
    for content, _ in text.documents(number):
        for line in content.lower().split("\n"):
            in_piece.extend(ids[word] for word in WORD.findall(line) if word in ids)
            in_piece.append(len(ids))
    return np.array(in_piece, np.int64)


def _kept(counts: Sequence[int], thinning: float) -> npt.NDArray[np.float64]:
    """With which probability each id is kept; ends of lines always are."""
    often = np.array(counts, np.float64)
    rarity = thinning * often.sum() / often
    return np.append(np.sqrt(rarity) + rarity, np.inf)
