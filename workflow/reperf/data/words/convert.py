"""Convert text to parts of words' ids."""

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from reperf.data.manifest import Manifest, Written
from reperf.data.parallel import run_parts
from reperf.data.part import Format, all_or_nothing, new_part
from reperf.data.text_files import UTF8, Pieces
from reperf.data.words.kind import Words
from reperf.errors import ReperfError
from reperf.files import whole_file

IDS = Format[np.ndarray](lambda ids: [ids.tobytes()])
"""Ids one after the other, uint32, the lowest byte first."""
WORD = re.compile(r"[^\W_]+(?:['\u2019][^\W_]+)*")
"""What a word is, in lower case: letters and digits, and an apostrophe within."""


def convert(settings: Words, output: Path, format_name: str, *, workers: int) -> Manifest:
    """Convert text to words' ids: part-00000 and so on, vocab.txt, manifest.json.

    A first pass counts all words. A second pass writes the words of the vocabulary as their places
    in it: the most frequent word is 0. The id after the last one ends a line. A word w with a share
    f(w) of all words of the vocabulary is kept with probability sqrt(t / f(w)) + t / f(w), t being
    `thinning`, as word2vec does.

    The text is cut into pieces of lines, a megabyte each, of which each part has neighbouring ones.

    Source: Mikolov et al., Distributed Representations of Words and Phrases (2013), and its code.

    Raises:
        ReperfError: the text is refused, no word is there often enough, a part would hold no two
            neighbouring words, or a file cannot be written.
    """
    assert settings.words
    text = Pieces(settings.words, settings.parts, UTF8)
    with all_or_nothing(output):
        counts = _counted(text, settings.parts, workers)
        if not counts:
            raise ReperfError(f"{settings.words}: holds no word; allowed: text")
        by_count = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
        vocabulary = [item for item in by_count if item[1] >= settings.least_count]
        if not vocabulary:
            word, count = by_count[0]
            raise ReperfError(
                f"{settings.words}: the most frequent word, {word[:100]!r}, is there "
                f"{count} times; allowed: {settings.least_count} or more (least_count)"
            )
        end = len(vocabulary)
        ids = {word: number for number, (word, _) in enumerate(vocabulary)}
        kept = _kept([count for _, count in vocabulary], settings.thinning)

        def write_part(part: int) -> Written:
            words = pairs = 0
            with new_part(output, part, IDS) as records:
                for number in text.of_part(part):
                    in_piece = _ids(text, number, ids)
                    random = np.random.RandomState([settings.seed, number])
                    left = in_piece[random.random_sample(len(in_piece)) < kept[in_piece]]
                    is_word = left < end
                    words += int(is_word.sum())
                    pairs += int((is_word[1:] & is_word[:-1]).sum())
                    records.append(left.astype("<u4"))
            if not pairs:
                raise ReperfError(
                    f"{settings.words}: part {part} of {settings.parts} would hold no line with "
                    "two words; allowed: more text for each part, or a larger thinning"
                )
            return records.summary(words=words)

        written = run_parts(write_part, settings.parts, workers, f"words to {format_name}")
        with whole_file(output / "vocab.txt") as lines:
            lines.writelines(f"{word} {count}\n" for word, count in vocabulary)
        return settings.write_manifest(
            output,
            format_name,
            written,
            vocabulary=end,
            words_read=counts.total(),
            words_known=sum(count for _, count in vocabulary),
        )


def _counted(text: Pieces, parts: int, workers: int) -> Counter[str]:
    """How often each word is there in the whole text."""

    def count(part: int) -> Counter[str]:
        counts: Counter[str] = Counter()
        for number in text.of_part(part):
            for content, _ in text.documents(number):
                counts.update(WORD.findall(content.lower()))
        return counts

    in_all: Counter[str] = Counter()
    for counts in run_parts(count, parts, workers, "count the words"):
        in_all.update(counts)
    return in_all


def _ids(text: Pieces, number: int, ids: dict[str, int]) -> np.ndarray:
    """The ids of a piece's known words, and the end of each line."""
    in_piece: list[int] = []
    for content, _ in text.documents(number):
        for line in content.lower().split("\n"):
            in_piece.extend(ids[word] for word in WORD.findall(line) if word in ids)
            in_piece.append(len(ids))
    return np.array(in_piece, np.int64)


def _kept(counts: Sequence[int], thinning: float) -> np.ndarray:
    """With which probability each id is kept; ends of lines always are."""
    often = np.array(counts, np.float64)
    rarity = thinning * often.sum() / often
    return np.append(np.sqrt(rarity) + rarity, np.inf)
