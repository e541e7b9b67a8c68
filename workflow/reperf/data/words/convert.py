"""Convert text to parts of words' ids: the one call behind the rule."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from reperf.data.bar import progress
from reperf.data.parallel import Tick, run_parts
from reperf.data.part import Format, Written, all_or_nothing, new_part
from reperf.data.text.corpus import UTF8
from reperf.data.tokens.stream import Stream
from reperf.data.words.manifest import WordManifest, WordSettings
from reperf.errors import ReperfError
from reperf.files import whole_file

IDS = Format[np.ndarray](lambda ids: [ids.tobytes()])
"""Ids one after the other, uint32, the lowest byte first."""
WORD = re.compile(r"[^\W_]+(?:['\u2019][^\W_]+)*")
"""What a word is, in lower case: letters and digits, and an apostrophe within."""


def convert(
    settings: WordSettings, output: Path, format_name: str, *, workers: int
) -> WordManifest:
    """Convert text to words' ids: part-00000 and so on, vocab.txt, manifest.json.

    A first pass counts all words, a second one writes those of the vocabulary by their place in it:
    the most frequent word is 0. The id behind the last one ends a line. A word w with a share f(w)
    of all words of the vocabulary is kept with probability sqrt(t / f(w)) + t / f(w), t being
    `thinning`, as word2vec does.

    The text is cut into pieces of lines, a megabyte each, of which each part has neighbouring ones.
    The bytes depend on the text, the settings and the number of parts, not on the number of
    workers. What an earlier conversion left in the folder is removed.

    Source: Mikolov et al., Distributed Representations of Words and Phrases (2013), and its code.

    Args:
        settings: the text, and how it is converted.
        output: the folder of the parts.
        format_name: of the only format.
        workers: number of processes.

    Raises:
        ReperfError: the text is refused, no word is there often enough, a part would hold no two
            neighbouring words, or a file cannot be written.
    """
    stream = Stream(Path(settings.words), UTF8)
    pieces = stream.pieces(settings.parts)
    with all_or_nothing(output):
        counts = _counted(settings, stream, pieces, workers)
        if not counts:
            raise ReperfError(f"{settings.words}: holds no word; allowed: text")
        known = [one for one in counts.items() if one[1] >= settings.least_count]
        if not known:
            often = max(counts.items(), key=lambda one: (one[1], one[0]))
            raise ReperfError(
                f"{settings.words}: the most frequent word, {often[0][:100]!r}, is there "
                f"{often[1]} times; allowed: {settings.least_count} or more (least_count)"
            )
        vocabulary = sorted(known, key=lambda one: (-one[1], one[0]))
        conversion = _Conversion(settings, vocabulary, stream, pieces, output)
        with progress(f"pieces of text to {format_name}", pieces) as watch:
            written = run_parts(conversion.write_part, settings.parts, workers, watch)
        with whole_file(output / "vocab.txt") as lines:
            lines.writelines(f"{word} {count}\n" for word, count in vocabulary)
        return WordManifest.of_parts(
            output,
            written,
            format=format_name,
            settings=settings,
            vocabulary=len(vocabulary),
            words_read=counts.total(),
            words_known=sum(count for _, count in vocabulary),
        )


def _lines(stream: Stream, number: int, pieces: int) -> Iterator[list[str]]:
    """The words of each line of a piece."""
    for text, _ in stream.piece(number, pieces):
        yield from map(WORD.findall, text.lower().split("\n"))


def _counted(settings: WordSettings, stream: Stream, pieces: int, workers: int) -> Counter[str]:
    """How often each word is there in the whole text."""
    share = pieces // settings.parts

    def count(part: int, tick: Tick) -> Counter[str]:
        found: Counter[str] = Counter()
        for number in range(part * share, (part + 1) * share):
            for text, _ in stream.piece(number, pieces):
                found.update(WORD.findall(text.lower()))
            tick()
        return found

    with progress("pieces of text whose words are counted", pieces) as watch:
        counted = run_parts(count, settings.parts, workers, watch)
    in_all: Counter[str] = Counter()
    for one in counted:
        in_all.update(one)
    return in_all


@dataclass(frozen=True)
class _Conversion:
    """What every worker knows."""

    settings: WordSettings
    vocabulary: Sequence[tuple[str, int]]
    stream: Stream
    pieces: int
    output: Path

    def write_part(self, part: int, tick: Tick) -> Written:
        """Write a part; return its summary."""
        words = pairs = 0
        share, end = self.pieces // self.settings.parts, len(self.vocabulary)
        ids = {word: number for number, (word, _) in enumerate(self.vocabulary)}
        kept = self._kept()
        with new_part(self.output / f"part-{part:05d}", IDS) as records:
            for number in range(part * share, (part + 1) * share):
                found = self._ids(number, ids)
                random = np.random.RandomState([self.settings.seed, number])
                found = found[random.random_sample(len(found)) < kept[found]]
                is_word = found < end
                words += int(is_word.sum())
                pairs += int((is_word[1:] & is_word[:-1]).sum())
                records.append(found.astype("<u4"))
                tick()
        if not pairs:
            raise ReperfError(
                f"{self.settings.words}: part {part} of {self.settings.parts} would hold no line "
                "with two words; allowed: more text for each part, or a larger thinning"
            )
        return records.summary(words=words)

    def _ids(self, number: int, ids: dict[str, int]) -> np.ndarray:
        """Those of a piece's known words, and the end of each line."""
        end = len(ids)
        found: list[int] = []
        for line in _lines(self.stream, number, self.pieces):
            found.extend(ids[word] for word in line if word in ids)
            found.append(end)
        return np.array(found, np.int64)

    def _kept(self) -> np.ndarray:
        """With which probability each id is kept; ends of lines always are."""
        counts = np.array([count for _, count in self.vocabulary], np.float64)
        rarity = self.settings.thinning * counts.sum() / counts
        return np.append(np.sqrt(rarity) + rarity, np.inf)
