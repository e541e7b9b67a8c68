"""Running text, cut into sentences."""

import re

# What a sentence ends with; a small letter behind it tells an abbreviation. The last three are
# ideographic, and no space follows them.
_BETWEEN = re.compile(r"(?<=[.!?])\s+(?![a-z])|(?<=[\u3002\uff01\uff1f])")


def sentences_of(paragraph: str) -> list[str]:
    """The sentences of a paragraph, without white space around them."""
    return [sentence for part in _BETWEEN.split(paragraph) if (sentence := part.strip())]
