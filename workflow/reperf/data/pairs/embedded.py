"""The embedded pairs: numbers and sums in English words, and the same in German.

Nobody has written them: the rules of both languages' numerals make them.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

from reperf.data.pairs.kind import SOURCE, TARGET
from reperf.files import whole_file

COUNT = 10_000
"""Of numbers, from 0 on, and of sums of two numbers below 100."""

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


def make(folder: Path) -> None:
    """Write both files: a number and a sum in turn, 20,000 pairs, always the same bytes.

    Raises:
        ReperfError: a file cannot be written.
    """
    for name, words, total in (
        (SOURCE, english, "{} and {} make {}"),
        (TARGET, german, "{} und {} sind {}"),
    ):
        with whole_file(folder / name) as stream:
            for line in _lines(words, total):
                stream.write(line[0].upper() + line[1:] + ".\n")


def _lines(words: Callable[[int], str], total: str) -> Iterator[str]:
    for number in range(COUNT):
        yield words(number)
        first, second = divmod(number, 100)
        yield total.format(*map(words, (first, second, first + second)))


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
