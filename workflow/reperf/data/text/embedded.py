"""The embedded text: what Python's own help says about the language, half a megabyte.

It comes with every Python, under its licence, as pydoc_data.topics.
"""

from pathlib import Path
from pydoc_data.topics import topics

from reperf.data.text.corpus import sentences_of
from reperf.files import whole_file


def make(path: Path) -> None:
    """Write the text: a sentence a line, an empty line after each document.

    The bytes depend only on the version of Python.

    Raises:
        ReperfError: the file cannot be written.
    """
    with whole_file(path) as stream:
        for _, topic in sorted(topics.items()):
            for paragraph in _without_rules(topic).split("\n\n"):
                for sentence in sentences_of(" ".join(paragraph.split())):
                    stream.write(sentence + "\n")
            stream.write("\n")


def _without_rules(topic: str) -> str:
    """A topic without the lines of one character that underline its titles."""
    lines = (line.strip() for line in topic.split("\n"))
    return "\n".join(line for line in lines if len(set(line)) != 1)
