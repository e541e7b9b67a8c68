"""Convert text to record parts."""

from collections import Counter
from pathlib import Path

from reperf.data.manifest import Manifest, Written
from reperf.data.parallel import run_parts
from reperf.data.part import all_or_nothing, new_part
from reperf.data.text.corpus import Corpus
from reperf.data.text.kind import END, MASK, START, Text, read_vocabulary
from reperf.data.text.records import FORMATS
from reperf.data.text.sequences import Marks, Tokens, make_sequences
from reperf.data.text.wordpiece import WordPieces, train_vocabulary
from reperf.errors import ReperfError
from reperf.files import sha256, whole_file


def convert(settings: Text, output: Path, format_name: str, *, workers: int) -> Manifest:
    """Convert text to records: part-00000 and so on, the files beside them, manifest.json.

    The text is cut into chunks of whole documents, some megabyte each, which are dealt out to the
    parts in turn; the sequences of a chunk are in a random order. The vocabulary lies in the
    folder, too, as vocab.txt.

    Raises:
        ReperfError: the vocabulary or the text is refused, there are too few documents for the
            parts, or a file cannot be written.
    """
    assert settings.text
    corpus = Corpus(settings.text)
    chunks = corpus.chunks(settings.parts)
    vocabulary, digest = _vocabulary(settings, corpus)
    word_pieces = WordPieces(vocabulary, lowercase=settings.lowercase)
    start, end, mask = map(vocabulary.index, (START, END, MASK))
    marks = Marks(start, end, mask, len(vocabulary))
    record_format = FORMATS[format_name]

    def tokens_of(first: int, end: int) -> Tokens:
        documents = list(corpus.documents(first, end))
        ids = iter(word_pieces.ids([text for document in documents for text in document]))
        return Tokens.of([[next(ids) for _ in document] for document in documents])

    def write_part(part: int) -> Written:
        counts: Counter[str] = Counter()
        with new_part(output, part, record_format.format) as records:
            for chunk in range(part, len(chunks) - 1, settings.parts):
                first, end = chunks[chunk : chunk + 2]
                tokens = tokens_of(first, end)
                counts["sentences"] += len(tokens.edges) - 1
                # One pass after the other: memory does not grow with their number.
                for turn in range(settings.passes if len(tokens.ids) else 0):
                    sequences = make_sequences(
                        tokens,
                        marks,
                        settings.sequence_length,
                        settings.max_predictions,
                        (settings.seed, turn, chunk),
                    )
                    for message in record_format.messages(sequences):
                        records.append(message)
                    counts.update(
                        sequences=len(sequences.input_ids),
                        tokens=int(sequences.input_mask.sum()),
                        predictions=int(sequences.masked_lm_weights.sum()),
                        random_next=int(sequences.next_sentence_labels.sum()),
                    )
        if not counts["sequences"]:
            raise ReperfError(
                f"{settings.text}: part {part} of {settings.parts} would hold no word; "
                "allowed: words in at least one document of each"
            )
        return records.summary(**counts)

    with all_or_nothing(output):
        with whole_file(output / "vocab.txt") as stream:
            stream.writelines(token + "\n" for token in vocabulary)
        written = run_parts(write_part, settings.parts, workers, f"text to {format_name}")
        return settings.write_manifest(
            output,
            format_name,
            written,
            vocabulary_sha256=digest or sha256(output / "vocab.txt"),
            documents=len(corpus),
        )


def _vocabulary(settings: Text, corpus: Corpus) -> tuple[list[str], str | None]:
    """The tokens, and the SHA-256 of the file that gave them, if one did."""
    size = settings.vocabulary_size
    if settings.vocabulary:
        return read_vocabulary(settings.vocabulary, size), sha256(settings.vocabulary)
    return train_vocabulary(corpus, size=size, lowercase=settings.lowercase), None
