"""The tokens of a vocabulary's file, checked. It needs no library, so that plans can ask it."""

from pathlib import Path
from string import whitespace

from reperf.errors import ReperfError
from reperf.files import reading

PADDING, UNKNOWN, START, END, MASK = SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
"""What a trained vocabulary begins with; a user's may have no [PAD], for padding is 0."""
NEEDED = (UNKNOWN, START, END, MASK)
MARK = "\ufeff"
"""Stands at the beginning of files that some editors write, and is no token's."""
LARGEST_FILE = 1 << 26  # bytes


def read_vocabulary(path: Path, size: int) -> list[str]:
    """The tokens of a vocabulary's file, a line each, in the order of their ids.

    Raises:
        ReperfError: the file cannot be read, is not UTF-8, has an empty line, a token twice or
            another number of them, or lacks one that every sequence needs.
    """
    try:
        with reading(path):
            if not path.is_file():
                raise ReperfError(f"{path}: no such file; allowed: a vocabulary, a token a line")
            with path.open("rb") as stream:
                content = stream.read(LARGEST_FILE + 1)
        lines = content.decode().removeprefix(MARK).removesuffix("\n").split("\n")
    except UnicodeDecodeError as error:
        raise ReperfError(f"{path}: byte {error.start}: allowed: text in UTF-8") from None
    places: dict[str, int] = {}
    for number, line in enumerate(lines, start=1):
        token = line.strip(whitespace)  # not more: Google's Chinese one has U+2028 as a token
        if not token:
            raise ReperfError(f"{path}: line {number}: empty; allowed: a token a line")
        if token in places:
            raise ReperfError(
                f"{path}: line {number}: got {token}, as in line {places[token]}; "
                "allowed: each token once"
            )
        places[token] = number
    for token in NEEDED:
        if token not in places:
            raise ReperfError(f"{path}: has no {token}; allowed: one with {', '.join(NEEDED)}")
    if len(places) != size:
        raise ReperfError(f"{path}: has {len(places)} tokens; allowed: {size}, vocabulary_size")
    return list(places)
