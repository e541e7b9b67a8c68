"""What somebody probably meant who wrote a word that is not allowed."""

import re
from collections.abc import Iterable
from difflib import get_close_matches

LONGEST = 100
"""Characters of a word that is compared; no key or name has more."""

_CLOSE = 0.6
"""How alike two words must be, of 1: `fp16` is not meant for `fp32`."""


def nearest(word: object, known: Iterable[str], *, close: float = _CLOSE) -> str | None:
    """The known word that is most like another one; None if none is like it."""
    if not isinstance(word, str) or len(word) > LONGEST:
        return None
    by_plain = {one.lower().replace("-", "_"): one for one in known}
    plain = word.lower().replace("-", "_")
    found = get_close_matches(plain, by_plain, n=1, cutoff=close)
    return by_plain[found[0]] if found else None


def did_you_mean(word: object, known: Iterable[str]) -> str:
    """The end of a refusal: "; did you mean pytorch?", or nothing if no known word is like it."""
    found = nearest(word, known)
    return f"; did you mean {found}?" if found else ""


def of_topology(word: str) -> str:
    """The same for a topology, such as 2x8 for 2n8g."""
    numbers = re.findall(r"[1-9]\d*", word)
    return f"; did you mean {numbers[0]}n{numbers[1]}g?" if len(numbers) == 2 else ""
