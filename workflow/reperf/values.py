"""What the values of a configuration may be: names, lines, paths and numbers, and their limits."""

import re
import unicodedata
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, Strict

NAME = r"^[a-z0-9][a-z0-9.-]*$"
TOPOLOGY = r"^([1-9][0-9]{0,4})n([1-9][0-9]{0,3})g$"
GRES = r"^gpu(:[A-Za-z0-9_.-]{1,60})?$"
SAID_OF = {
    NAME: "lowercase letters, digits, - and ., a letter or digit first",
    TOPOLOGY: "<nodes>n<devices per node>g, such as 2n8g, up to 99999n9999g",
    GRES: "gpu, or gpu:<type>, such as gpu:h100",
}  # a pattern -> what it allows, in words
Status = Literal["ok", "oom", "failed", "timeout", "unsupported"]  # how a run ends

LONGEST_NAME = 100  # two names and a suffix make one file name, which may have 255 bytes
LONGEST_PATH = 4095
LONGEST_STEP = 255  # the most bytes that Linux allows in a path, and in one name of it
MOST_PARTS = 100_000  # their names have five digits
MOST_PROCESSES = 1024  # processes or threads that one machine starts
LARGEST_SEED = 2_000_000_000  # frameworks take 31 bits, and repeats and ranks are added to it

# Control characters, surrogates, direction marks, line and paragraph ends.
_UNPRINTED = {"Cc", "Cf", "Cs", "Zl", "Zp"}


def one_line(text: str) -> str:
    """The text itself; ValueError where it is not one line of printed characters."""
    if not text.strip() or any(unicodedata.category(letter) in _UNPRINTED for letter in text):
        raise ValueError("allowed: one line of printed characters")
    return text


FILLED_IN = re.compile(r"[{}]|<\w+>")
"""What Snakemake takes for a wildcard, or for one of its path variables, in a path."""
NOT_FILLED_IN = "allowed: names without { and }, and without a word between < and >"


def _path(path: Path) -> Path:
    one_line(str(path))
    if FILLED_IN.search(str(path)):
        raise ValueError(NOT_FILLED_IN)
    if str(path).startswith(("~/", "$")):
        raise ValueError("allowed: the whole path, for ~ and $ stand for nothing here")
    parts = [len(part.encode()) for part in path.parts]
    if max(parts, default=0) > LONGEST_STEP or len(str(path).encode()) > LONGEST_PATH:
        raise ValueError(
            f"allowed: up to {LONGEST_PATH} bytes, and {LONGEST_STEP} between two slashes"
        )
    return path


Name = Annotated[str, Field(max_length=LONGEST_NAME, pattern=NAME)]
PlainPath = Annotated[Path, AfterValidator(_path)]
Number = Annotated[int, Strict()]  # YAML's `yes` is none, nor is "3"
