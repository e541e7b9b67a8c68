"""Files of tests, written by their names."""

from collections.abc import Mapping
from pathlib import Path


def write(path: Path, written: str | bytes | Mapping[str, str | bytes], mode: int = 0) -> Path:
    """Write a file, or a folder of them by their names, perhaps with a mode; returns its path."""
    if isinstance(written, str | bytes):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(written.encode() if isinstance(written, str) else written)
        if mode:
            path.chmod(mode)
    else:
        path.mkdir(parents=True, exist_ok=True)
        for name, one in written.items():
            write(path / name, one, mode)
    return path
