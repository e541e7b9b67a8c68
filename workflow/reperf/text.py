"""Text from outside, shown so that it can do no harm to a terminal, a page or a table.

Logs, records, file names and titles may hold anything. A terminal obeys some characters; others
begin a new line, reverse the text or are invisible; most are not allowed in HTML or SVG at all.
"""

import re
from collections.abc import Iterable
from unicodedata import category

FILLERS = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
"""Invisible characters that Unicode counts as letters, marks or symbols."""

_ESCAPED = re.compile(r"\\(?:[\\nrt]|x[0-9a-f]{2}|u[0-9a-f]{4}|U[0-9a-f]{8})")
_TEXT = re.compile(r"([^0-9]*)([0-9]*)")  # a piece of a name, and the number after it
# What spreadsheets take for the beginning of a formula, full-width characters included.
_FORMULA = re.compile("'*[=+\\-@\uff1d\uff0b\uff0d\uff20]")

# What Markdown reads as markup: anywhere; at the beginning of a list, a rule or a heading; and what
# many renderers turn into links.
_MARKUP = re.compile(r"([\\`*_\[\]<>|#~$]|&(?=[#\w]+;)|^[-+=]|:(?=//)|(?<=\bwww)\.)", re.IGNORECASE)
_NUMBERED = re.compile(r"^(\d{1,9})(?=[.)]( |$))")


def printable(text: str) -> str:
    r"""The text on one line: all but visible characters and spaces is escaped, such as `\x1b`.

    Examples:
        >>> print(printable("\x1b[31mred\n"))
        \x1b[31mred\n
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(char if _harmless(char) else _escape(char) for char in text)


def count(value: int, noun: str) -> str:
    """A number of things.

    Examples:
        >>> [count(1, "cell"), count(0, "cell"), count(2, "search"), count(3, "class")]
        ['1 cell', '0 cells', '2 searches', '3 classes']
    """
    plural = "es" if noun.endswith(("ch", "s", "sh", "x")) else "s"
    return f"{value} {noun}" + ("" if value == 1 else plural)


def listed(words: Iterable[object], shown: int = 6, separator: str = ", ") -> str:
    """The first of some words, and how many more there are.

    Examples:
        >>> listed("abcde", 3)
        'a, b, c and 2 more'
    """
    every = list(map(str, words))
    more = len(every) - shown
    return separator.join(every[:shown]) + (f" and {more} more" if more > 0 else "")


def in_markdown(text: str) -> str:
    r"""The text as Markdown shows it unchanged, on one line.

    Examples:
        >>> print(in_markdown("a|b *c*"))
        a\|b \*c\*
    """
    # To Markdown, several spaces are structure.
    line = " ".join(printable(text).split())
    return _NUMBERED.sub(r"\1\\", _MARKUP.sub(r"\\\1", line))


def printable_lines(text: str) -> str:
    """The text with every line made printable; line feeds and tabs stay."""
    lines = text.split("\n")
    return "\n".join("\t".join(map(printable, line.split("\t"))) for line in lines)


def as_field(text: str) -> str:
    """The text for a field of a CSV file: printable, and no formula; `from_field` undoes this.

    A field that a spreadsheet would take for a formula begins with an apostrophe. Harmless text
    stays as it is.

    Examples:
        >>> as_field("=1+1"), as_field("1+1")
        ("'=1+1", '1+1')
    """
    shown = printable(text)
    if shown != text or _ESCAPED.search(text):
        shown = "".join(r"\\" if char == "\\" else printable(char) for char in text)
    return f"'{shown}" if _FORMULA.match(shown) else shown


def field_of(value: object) -> str:
    """Any value for such a field: numbers with all their digits, None as nothing.

    Examples:
        >>> field_of(0.1 + 0.2), field_of(384.0), field_of(None)
        ('0.30000000000000004', '384', '')
    """
    if isinstance(value, float):
        return repr(float(value)).removesuffix(".0")  # float(): numpy's prints its type
    return as_field(value) if isinstance(value, str) else "" if value is None else str(value)


def natural_sort_key(path: str) -> tuple[list[list[tuple[str, int, str]]], str]:
    """The key by which paths are sorted as people do.

    Examples:
        >>> sorted(["result_10", "result_2"], key=natural_sort_key)
        ['result_2', 'result_10']
    """
    parts = [
        [(text, len(number := digits.lstrip("0")), number) for text, digits in _TEXT.findall(part)]
        for part in path.split("/")
    ]
    return parts, path


def from_field(field: str) -> str:
    """The text that `as_field` was given.

    Examples:
        >>> from_field("'=1+1")
        '=1+1'
    """
    if field.startswith("'") and _FORMULA.match(field):
        field = field[1:]
    return _ESCAPED.sub(lambda escape: escape[0].encode().decode("unicode_escape"), field)


def _harmless(char: str) -> bool:
    return (char.isprintable() or category(char) == "Zs") and char not in FILLERS


def _escape(char: str) -> str:
    return char.encode("unicode_escape").decode("ascii")
