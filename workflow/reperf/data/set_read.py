"""What a run reads: a converted set by its manifest, a folder of images by its files."""

import json
import os
from collections.abc import Iterator
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

from google_crc32c import value

from reperf.data.kind import MANIFEST, Part
from reperf.errors import ReperfError

CONTENTS = 1 << 26
"""Bytes up to which a folder's files are read for its digest; of more, names and sizes count."""
IMAGES = (".jpeg", ".jpg")  # how the names of files end that the readers of folders take


def read_of_set(folder: str | None, form: str) -> tuple[str | None, dict[str, Any] | None]:
    """The digest of what a run reads, its `data` as `input` says, and a record's SetRead of it.

    The digest is the SHA-256 of the manifest of a converted set. Of a folder of images: of their
    names and sizes, and of their contents where all have at most CONTENTS bytes. None where there
    is no such set; the second is None, too, where it counts nothing.

    Raises:
        ReperfError: a part of a small set is not what its manifest says.
    """
    if folder is None:
        return None, None
    with suppress(OSError):  # the trainer says what is wrong with it
        return _of_folder(Path(folder)) if form == "folder" else _of_parts(Path(folder))
    return None, None


def _of_parts(folder: Path) -> tuple[str | None, dict[str, Any] | None]:
    manifest = folder / MANIFEST
    if not manifest.is_file():
        return None, None
    text = manifest.read_bytes()
    digest, content = sha256(text).hexdigest(), json.loads(text)
    parts = content.get("parts", [])
    counts = {name for part in parts[:1] for name in part if name not in Part.model_fields}
    if not counts:
        return digest, None
    _check_parts(folder, content)
    (counted,) = counts
    samples = sum(part[counted] for part in parts)
    name = folder.parent.name
    held = {"name": name, "counted": counted, "samples": samples, "bytes": content["bytes"]}
    return digest, held


def _check_parts(folder: Path, content: dict[str, Any]) -> None:
    """Refuse a small set if the content of a part differs from its manifest.

    The sizes of a large set's parts have been compared; to read them would take as long as a run.
    """
    if content["bytes"] > CONTENTS:
        return
    for part in content["parts"]:
        file = folder / part["name"]
        if file.is_file() and f"{value(file.read_bytes()):08x}" != part.get("crc32c"):
            raise ReperfError(
                f"{file}: its content is not what {MANIFEST} beside it says, so that nobody knows "
                f"what it is; once {folder} is removed, the next call converts it"
            )


def _of_folder(folder: Path) -> tuple[str | None, dict[str, Any] | None]:
    files = [(file, os.stat(file)) for file in _images(folder / "train")]  # noqa: PTH116 - a million
    if not files:
        return None, None
    size = sum(found.st_size for _, found in files)
    digest, times = sha256(), sha256()
    for file, found in files:
        digest.update(
            f"{os.path.relpath(file, folder)}\n{found.st_size}\n".encode(errors="replace")
        )
        if size <= CONTENTS:
            digest.update(Path(file).read_bytes())
        else:
            times.update(f"{found.st_mtime_ns}\n".encode())
    ours = folder.parts[0] == "data" and len(folder.parts) == 3  # data/<name>/images
    return digest.hexdigest(), {
        "name": folder.parts[1] if ours else folder.name,
        "counted": "images",
        "samples": len(files),
        "bytes": size,
        "times": "" if size <= CONTENTS else times.hexdigest(),
    }


def _images(train: Path) -> Iterator[str]:
    """The paths of all images in the folders of their classes, in one order everywhere."""
    for synset in sorted(found.path for found in os.scandir(train) if found.is_dir()):
        yield from sorted(
            found.path
            for found in os.scandir(synset)
            if found.name.lower().endswith(IMAGES) and found.is_file()
        )
