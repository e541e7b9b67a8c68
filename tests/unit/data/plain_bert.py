"""Text to BERT's sequences in plain Python, rule by rule and one token after the other.

It shares no code with reperf. Tests hold reperf's tokens and counts against it, and
benchmarks/convert_text.py its speed. The rules are those of google-research/bert's tokenization.py
and create_pretraining_data.py.
"""

import unicodedata

LONGEST_WORD = 200
SHORT = 0.1  # of documents
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


def read_documents(lines, tokenizer):
    """Lists of tokenized sentences; an empty line ends a document."""
    documents = [[]]
    for line in lines:
        if not line.strip():
            documents.append([])
        elif tokens := tokenizer.tokens(line.strip()):
            documents[-1].append(tokens)
    return [document for document in documents if document]


def sequences_of(documents, vocabulary, length, predictions, random):
    """All sequences of one pass: dictionaries of the lists that a record holds."""
    ids = {token: number for number, token in enumerate(vocabulary)}
    made = []
    for number in range(len(documents)):
        for first, second, random_next in pairs_of(documents, number, length - 3, random):
            tokens = ["[CLS]", *first, "[SEP]", *second, "[SEP]"]
            segments = [0] * (len(first) + 2) + [1] * (len(second) + 1)
            positions, answers = mask(tokens, vocabulary, predictions, random)
            padding, missing = [0] * (length - len(tokens)), predictions - len(positions)
            made.append(
                {
                    "input_ids": [ids[token] for token in tokens] + padding,
                    "input_mask": [1] * len(tokens) + padding,
                    "segment_ids": segments + padding,
                    "masked_lm_positions": positions + [0] * missing,
                    "masked_lm_ids": [ids[token] for token in answers] + [0] * missing,
                    "masked_lm_weights": [1.0] * len(positions) + [0.0] * missing,
                    "next_sentence_labels": [int(random_next)],
                }
            )
    random.shuffle(made)
    return made


def pairs_of(documents, number, most, random):
    """The pairs of halves of one document, and whether the second is of another document."""
    document = documents[number]
    target = random.randint(2, most) if random.random() < SHORT else most
    pairs, chunk, size, at = [], [], 0, 0
    while at < len(document):
        chunk.append(document[at])
        size += len(document[at])
        at += 1
        if at < len(document) and size < target:
            continue
        split = random.randint(1, len(chunk) - 1) if len(chunk) > 1 else 1
        first = [token for sentence in chunk[:split] for token in sentence]
        second = [token for sentence in chunk[split:] for token in sentence]
        random_next = len(chunk) == 1 or random.random() < 0.5
        if random_next:
            second = elsewhere(documents, number, target - len(first), random)
            at -= len(chunk) - split
        shorten(first, second, most, random)
        pairs.append((first, second, random_next))
        chunk, size = [], 0
    return pairs


def elsewhere(documents, own, wanted, random):
    for _ in range(10):
        other = random.randint(0, len(documents) - 1)
        if other != own:
            break
    document, tokens = documents[other], []
    for sentence in document[random.randint(0, len(document) - 1) :]:
        tokens += sentence
        if len(tokens) >= wanted:
            break
    return tokens


def shorten(first, second, most, random):
    while len(first) + len(second) > most:
        longer = first if len(first) > len(second) else second
        longer.pop(0 if random.random() < 0.5 else -1)


def mask(tokens, vocabulary, predictions, random):
    """Mask some tokens in place; returns their positions in order, and what they were."""
    inside = [at for at, token in enumerate(tokens) if token not in ("[CLS]", "[SEP]")]
    random.shuffle(inside)
    count = min(predictions, max(1, round(len(tokens) * 0.15)))
    positions = sorted(inside[:count])
    answers = [tokens[at] for at in positions]
    for at in positions:
        if random.random() < 0.8:
            tokens[at] = "[MASK]"
        elif random.random() < 0.5:
            tokens[at] = vocabulary[random.randint(0, len(vocabulary) - 1)]
    return positions, answers
