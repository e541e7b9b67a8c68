"""How tests have text converted, where nothing else is what they are about."""

from collections.abc import Mapping
from pathlib import Path

from reperf.data.text.settings import TextSettings

SHAPE = {"sequence_length": 64, "max_predictions": 10, "vocabulary": 2000}


def text_settings(
    text: Path, shape: Mapping[str, int] = SHAPE, parts: int = 4, **changes: object
) -> TextSettings:
    """Settings for a text and for a workload's shape, with some changed."""
    usual = {
        "text": str(text),
        "vocabulary": None,
        "vocabulary_size": shape["vocabulary"],
        "lowercase": True,
        "sequence_length": shape["sequence_length"],
        "max_predictions": shape["max_predictions"],
        "passes": 1,
        "parts": parts,
        "seed": 1,
    }
    return TextSettings(**usual | changes)
