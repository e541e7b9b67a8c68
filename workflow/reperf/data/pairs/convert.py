"""Pairs: the embedded pairs, and how pairs become parts of ids."""

from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from reperf.data.byte_pairs import read_vocabulary
from reperf.data.conversion import Conversion, Counts, Format, PartWriter
from reperf.data.pairs import LAYOUT, SOURCE, TARGET, Pairs
from reperf.data.text_files import blocks_of_lines, read_piece
from reperf.errors import ReperfError
from reperf.files import whole_file

PIECE = 1 << 13  # pairs that are converted at a time
COUNT = 10_000  # of the embedded set's numbers, from 0 on, and of its sums of two numbers below 100
Ids = npt.NDArray[np.integer]

_ENGLISH, _ENGLISH_TENS, _GERMAN, _GERMAN_TENS = (
    line.split()
    for line in (
        "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen "
        "fifteen sixteen seventeen eighteen nineteen",
        "- - twenty thirty forty fifty sixty seventy eighty ninety",
        "null eins zwei drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn vierzehn "
        "fünfzehn sechzehn siebzehn achtzehn neunzehn",
        "- - zwanzig dreißig vierzig fünfzig sechzig siebzig achtzig neunzig",
    )
)


class Pair(NamedTuple):
    """The ids of both sentences, each with its end."""

    source: Ids
    target: Ids


IDS = Format[Pair](
    lambda pair: [ids.tobytes() for ids in pair],
    sidecars={".idx": lambda pair, at, _: f"{at} {len(pair.source)} {len(pair.target)}\n"},
)  # ids one after the other, and for each pair a line: its offset in bytes, and both lengths


def conversion(settings: Pairs, _format_name: str, _workers: int) -> Conversion[Pair]:
    """Convert pairs to ids. Each part has neighbouring pairs, as many as any other or one more."""
    vocabulary = read_vocabulary(settings.joint_bpe)
    edges = _edges_of(settings.source)
    count = min(map(len, edges.values())) - 1
    if count < settings.parts:
        raise ReperfError(
            f"{settings.source}: has {count} pairs; allowed: one or more for each of "
            f"{settings.parts} parts"
        )

    def ids_of(path: Path, begin: int, end: int) -> list[Ids]:
        """The ids of a file's lines, from one to before another, each with its end."""
        first, last = edges[path][[begin, end]].tolist()
        lines = read_piece(path, first, last - first, LAYOUT).removesuffix("\n").split("\n")
        arrays = vocabulary.arrays([(line.removesuffix("\r"), True) for line in lines])
        for number, ids in enumerate(arrays, begin + 1):
            if len(ids) > settings.longest:
                raise ReperfError(
                    f"{path}: line {number}: has {len(ids)} tokens with its end; allowed: up to "
                    f"{settings.longest}, `longest`"
                )
        return arrays

    def fill(part: int, records: PartWriter[Pair]) -> Counts:
        source_tokens = target_tokens = 0
        first, end = (count * edge // settings.parts for edge in (part, part + 1))
        for begin in range(first, end, PIECE):
            sources, targets = (ids_of(path, begin, min(begin + PIECE, end)) for path in edges)
            for pair in map(Pair, sources, targets):
                records.append(pair)
            source_tokens += sum(map(len, sources))
            target_tokens += sum(map(len, targets))
        counts = {"source_tokens": source_tokens, "target_tokens": target_tokens}
        return {"pairs": end - first, **counts}

    return Conversion(IDS, fill, fields=vocabulary.fields)


def _edges_of(folder: Path) -> dict[Path, npt.NDArray[np.int64]]:
    """Where the lines of both files of a folder begin and end; both must have equally many.

    So 16 bytes of each pair are held, and nothing of the text.
    """
    edges = {path: _edges(path) for path in (folder / SOURCE, folder / TARGET)}
    source, target = (len(of_file) - 1 for of_file in edges.values())
    if source != target:
        longer = folder / (TARGET if source < target else SOURCE)
        raise ReperfError(
            f"{longer}: line {min(source, target) + 1} belongs to no other: {SOURCE} has "
            f"{source} lines and {TARGET} {target}; allowed: equally many"
        )
    return edges


def _edges(path: Path) -> npt.NDArray[np.int64]:
    """Where each line of a file begins, and where the last one ends."""
    edges: list[npt.NDArray[np.int64]] = []
    for at, block in blocks_of_lines(path):
        ends = at + 1 + np.flatnonzero(np.frombuffer(block, np.uint8) == ord("\n"))
        if not block.endswith(b"\n"):
            ends = np.append(ends, at + len(block))
        edges += [ends] if edges else [np.array([at]), ends]
    if not edges:
        raise ReperfError(f"{path}: an empty file; allowed: {LAYOUT}")
    return np.concatenate(edges)


def make(folder: Path) -> None:
    """Write the embedded pairs: numbers and sums in English words, and the same in German.

    Nobody has written them: the rules of both languages' numerals make them. A number and a sum
    follow each other, 20,000 pairs, always the same bytes.
    """
    for name, words, total in (
        (SOURCE, english, "{} and {} make {}"),
        (TARGET, german, "{} und {} sind {}"),
    ):
        with whole_file(folder / name) as stream:
            for number in range(COUNT):
                terms = divmod(number, 100)
                of_sum = total.format(*map(words, (*terms, sum(terms))))
                for line in (words(number), of_sum):
                    stream.write(line[0].upper() + line[1:] + ".\n")


def english(number: int) -> str:
    """A number below a million in English words."""
    if number < 20:
        return _ENGLISH[number]
    if number < 100:
        tens, rest = divmod(number, 10)
        return _ENGLISH_TENS[tens] + (f"-{_ENGLISH[rest]}" if rest else "")
    size, name = (100, "hundred") if number < 1000 else (1000, "thousand")
    many, rest = divmod(number, size)
    words = f"{english(many)} {name}"
    if not rest:
        return words
    return f"{words} {'and ' if rest < 100 else ''}{english(rest)}"


def german(number: int) -> str:
    """A number below a million as one German word."""
    if number < 20:
        return _GERMAN[number]
    if number < 100:
        tens, rest = divmod(number, 10)
        return (f"{_before(rest)}und" if rest else "") + _GERMAN_TENS[tens]
    size, name = (100, "hundert") if number < 1000 else (1000, "tausend")
    many, rest = divmod(number, size)
    return _before(many) + name + (german(rest) if rest else "")


def _before(number: int) -> str:
    """A number as it stands before another part of the word: 1 and 101 lose their last letter."""
    word = german(number)
    return word[:-1] if word.endswith("eins") else word
