import argparse
import re


def count(text: str) -> int:
    """A whole number above 0, as an argument gives it."""
    if not re.fullmatch(r"[1-9]\d{0,11}", text):
        raise argparse.ArgumentTypeError(f"got {text!r}; allowed: a whole number above 0")
    return int(text)
