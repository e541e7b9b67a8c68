"""Text to BERT's tokens in plain Python, by the rules of google-research/bert's tokenization.py.

It shares no code with reperf. Tests hold reperf's tokens against it, and
benchmarks/convert_text.py its speed.
"""

import unicodedata

LONGEST_WORD = 200
IDEOGRAPHS = (
    (0x4E00, 0x9FFF),
    (0x3400, 0x4DBF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2B73F),
    (0x2B740, 0x2B81F),
    (0x2B820, 0x2CEAF),
    (0xF900, 0xFAFF),
    (0x2F800, 0x2FA1F),
)


class Tokenizer:
    """Cuts sentences into the tokens of a vocabulary."""

    def __init__(self, vocabulary, lowercase=True):
        self.vocabulary = set(vocabulary)
        self.lowercase = lowercase

    def tokens(self, sentence):
        found = []
        for word in self.words(sentence):
            found += self.pieces(word)
        return found

    def words(self, sentence):
        """Words and single punctuation marks; every ideograph is a word."""
        kept = []
        for character in sentence:
            if is_space(character):
                kept.append(" ")
            elif is_ideograph(character):
                kept += [" ", character, " "]
            elif not is_dropped(character):
                kept.append(character)
        words = []
        for word in "".join(kept).split():
            plain = without_accents(word.lower()) if self.lowercase else word
            words += apart("".join(plain))
        return words

    def pieces(self, word):
        """The longest token that a word begins with, then of the rest, and so on."""
        if len(word) > LONGEST_WORD:
            return ["[UNK]"]
        found, begin = [], 0
        while begin < len(word):
            end = len(word)
            while end > begin:
                piece = word[begin:end] if begin == 0 else "##" + word[begin:end]
                if piece in self.vocabulary:
                    break
                end -= 1
            else:
                return ["[UNK]"]
            found.append(piece)
            begin = end
        return found


def is_space(character):
    return character in " \t\n\r" or unicodedata.category(character) == "Zs"


def is_dropped(character):
    return character in "\0\ufffd" or unicodedata.category(character) in ("Cc", "Cf")


def is_ideograph(character):
    return any(first <= ord(character) <= last for first, last in IDEOGRAPHS)


def is_punctuation(character):
    code = ord(character)
    marks = 33 <= code <= 47 or 58 <= code <= 64 or 91 <= code <= 96 or 123 <= code <= 126
    return marks or unicodedata.category(character).startswith("P")


def without_accents(word):
    return [one for one in unicodedata.normalize("NFD", word) if unicodedata.category(one) != "Mn"]


def apart(word):
    """A word, cut before and after each of its punctuation marks."""
    pieces = [[]]
    for character in word:
        if is_punctuation(character):
            pieces += [[character], []]
        else:
            pieces[-1].append(character)
    return ["".join(piece) for piece in pieces if piece]
