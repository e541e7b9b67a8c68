"""What decides a data set of text, beside the text itself."""

from pydantic import Field

from reperf.faults import Model


class TextSettings(Model):
    """How text becomes sequences, and into how many parts they go."""

    text: str = Field(description="the file or folder of the text")
    vocabulary: str | None = Field(
        description="the file of the vocabulary, a token a line; None: trained on the text"
    )
    vocabulary_size: int = Field(description="its tokens")
    lowercase: bool = Field(description="whether case and accents are dropped")
    sequence_length: int = Field(description="tokens of a sequence, padding included")
    max_predictions: int = Field(description="masked tokens of a sequence, padding included")
    passes: int = Field(description="over the text, each with pairs and masks of its own")
    parts: int = Field(description="record files")
    seed: int = Field(description="of pairs, masks and order")
