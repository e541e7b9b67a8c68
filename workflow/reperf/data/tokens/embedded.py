"""The embedded text of tokens: what Python's own help says about the language, as it stands there.

It comes with every Python, under its licence, as pydoc_data.topics.
"""

from pathlib import Path
from pydoc_data.topics import topics

from reperf.data.text_files import END
from reperf.files import whole_file


def make(path: Path) -> None:
    """Write the text: a document for each topic.

    The bytes depend only on the version of Python.

    Raises:
        ReperfError: the file cannot be written.
    """
    with whole_file(path) as stream:
        stream.write(f"{END}\n".join(topic.rstrip() + "\n" for _, topic in sorted(topics.items())))
