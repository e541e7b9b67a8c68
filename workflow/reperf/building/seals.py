"""Seals: what a rule built and from what, so that nothing else passes for it.

Snakemake remembers in a folder of its own what it built a file from, but people remove that folder;
and it never checks whether a file is still what was built. So a table that somebody edited by hand
would enter the report and the archive. Each job that builds a part of the report leaves a seal
beside the results: the SHA-256 of what it wrote, of what it read and of its parameters. A job whose
seal is broken is run again, and no job reads an input that has changed since it was built.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any, Self

from pydantic import BaseModel, Field, ValidationError

from reperf.errors import ReperfError
from reperf.files import sha256 as sha256_of_file
from reperf.files import whole_file

FOLDER = Path("results/.seals")


class Seal(BaseModel):
    """What a job wrote, what it read, and its parameters."""

    outputs: dict[str, str] = Field(description="path -> SHA-256; a folder's covers its contents")
    inputs: dict[str, tuple[int, int, int, str]] = Field(
        description="path -> size in bytes, mtime and ctime in ns, SHA-256"
    )
    params: str = Field(description="SHA-256 of the parameters")

    @classmethod
    def of(cls, output: str) -> Self | None:
        """The seal of the job with this first output; None if it has none."""
        try:
            return cls.model_validate_json(_place(output).read_bytes())
        except (OSError, ValidationError):
            return None

    def edited(self) -> list[str]:
        """The outputs that have changed since they were written."""
        return [path for path, digest in self.outputs.items() if _digest(path) != digest]

    def holds(self, params: Mapping[str, Any]) -> bool:
        """Whether the job would read the same inputs and have the same parameters."""
        return self.params == _digest_of(params) and not any(
            _has_changed(path, *state) for path, state in self.inputs.items()
        )


@contextmanager
def sealed(outputs: Iterable[str], inputs: Iterable[str], params: Mapping[str, Any]) -> Iterator:
    """Seal what the block builds.

    Args:
        outputs: files and folders that it writes.
        inputs: files that it reads.
        params: what else decides the result.

    Raises:
        ReperfError: an input has changed since another job built it.
    """
    outputs = list(outputs)
    read = {path: (*_state(path), _digest(path)) for path in inputs}
    _check(read)
    yield
    written = {path: _digest(path) for path in outputs}
    seal = Seal(outputs=written, inputs=read, params=_digest_of(params))
    with whole_file(_place(outputs[0]), durable=False) as stream:
        stream.write(seal.model_dump_json())


def _check(read: Mapping[str, tuple]) -> None:
    for path in FOLDER.rglob("*.json"):
        seal = Seal.of(path.relative_to(FOLDER).as_posix().removesuffix(".json"))
        for output in read.keys() & (seal.outputs.keys() if seal else ()):
            if read[output][-1] != seal.outputs[output]:
                raise ReperfError(f"{output}: has changed since it was built; allowed: as built")


def _place(output: str) -> Path:
    return FOLDER / f"{output}.json"


def _has_changed(path: str, size: int, modified: int, changed: int, digest: str) -> bool:
    """Whether a file has other contents, or is gone."""
    try:
        return _state(path) != (size, modified, changed) and _digest(path) != digest
    except OSError:
        return True


def _state(path: str) -> tuple[int, int, int]:
    status = Path(path).stat()
    return status.st_size, status.st_mtime_ns, status.st_ctime_ns


def _digest(path: str) -> str | None:
    """The SHA-256 of a file, or of a folder's names and contents; None if it does not exist."""
    place = Path(path)
    if place.is_dir():
        # Snakemake puts a hidden file of its own into folders.
        files = sorted(file for file in place.rglob("[!.]*") if file.is_file())
        return _digest_of({str(file): sha256_of_file(file) for file in files})
    return sha256_of_file(place) if place.exists() else None


def _digest_of(content: Mapping[str, Any]) -> str:
    return sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
