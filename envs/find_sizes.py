"""Write envs/sizes.csv: the bytes of each lock's packages, as downloaded and once unpacked.

    python envs/find_sizes.py

Run it after a lock has changed: `reperf estimate` reads the table, and takes no size of a lock that
has changed since. The index gives the sizes of the files. The directory at the end of a wheel gives
its size once unpacked, and is read without the rest. If a package has several wheels for the
platform, the largest counts; if it is compiled here, its sources count.
"""

import csv
import subprocess
import tarfile
import tomllib
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from urllib.request import Request, urlopen
from zipfile import BadZipFile, ZipFile

from reperf.systems import load_systems
from uv import find_uv_bin

PLATFORM = "x86_64-manylinux_2_28"
ENVS = Path(__file__).parent
TAILS = ("-100000", "-10000000", "0-")
"""Ranges of bytes of a wheel, each larger than the one before, that may hold its directory."""


def bytes_of(lock: Path, python: str) -> tuple[int, int]:
    """The bytes of a lock's packages, packed and unpacked, for a Python such as "3.11"."""
    compiling = [find_uv_bin(), "pip", "compile", "--quiet", "--no-deps", "--no-config"]
    compiling += ["--python-version", python, "--python-platform", PLATFORM]
    answer = subprocess.run(
        [*compiling, "--format", "pylock.toml", str(lock)],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    packages = tomllib.loads(answer.stdout)["packages"]
    files = [
        max(package.get("wheels") or [package["sdist"]], key=lambda file: file["size"])
        for package in packages
    ]
    with ThreadPoolExecutor(8) as pool:
        unpacked = pool.map(unpacked_bytes, (file["url"] for file in files))
        return sum(file["size"] for file in files), sum(unpacked)


@cache
def unpacked_bytes(url: str) -> int:
    """The bytes of the members of a wheel, or of a package's sources."""
    if not url.endswith(".whl"):
        with tarfile.open(fileobj=BytesIO(_part(url, TAILS[-1]))) as sources:
            return sum(member.size for member in sources)
    for tail in TAILS:
        try:
            return sum(member.file_size for member in ZipFile(BytesIO(_part(url, tail))).infolist())
        except BadZipFile:  # the directory begins earlier
            continue
    raise BadZipFile(url)


def _part(url: str, part: str) -> bytes:
    with urlopen(Request(url, headers={"Range": f"bytes={part}"}), timeout=60) as answer:
        return answer.read()


rows = {}
for system in load_systems().values():
    for name, lock in system.locks.items():
        ending = "" if name == "cpu" else f".{name}"
        path = ENVS / f"{system.id}{ending}.txt"
        if path.exists() and path.name not in rows:
            digest = sha256(path.read_bytes()).hexdigest()
            rows[path.name] = (path.name, digest, *bytes_of(path, lock.python))
            print(*rows[path.name])
with Path(ENVS, "sizes.csv").open("w", newline="", encoding="utf-8") as stream:
    heading = ("lock", "sha256", "bytes", "unpacked")
    csv.writer(stream, lineterminator="\n").writerows([heading, *rows.values()])
