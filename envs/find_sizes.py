"""Write envs/sizes.csv: how many bytes each lock's packages are to download, as the index says.

    python envs/find_sizes.py

Run it after a lock has changed: `reperf estimate` reads the table, and takes no size of a lock that
has changed since. Of a package with several wheels for the platform the largest counts, of one that
is compiled its sources.
"""

import csv
import subprocess
import tomllib
from hashlib import sha256
from pathlib import Path

from reperf.systems import load_systems
from uv import find_uv_bin

PLATFORM = "x86_64-manylinux_2_28"
ENVS = Path(__file__).parent


def bytes_of(lock: Path, python: str) -> int:
    """The bytes to download of a lock's packages, for a Python such as "3.11" on PLATFORM."""
    compiling = [find_uv_bin(), "pip", "compile", "--quiet", "--no-deps", "--no-config"]
    compiling += ["--python-version", python, "--python-platform", PLATFORM]
    answer = subprocess.run(
        [*compiling, "--format", "pylock.toml", str(lock)],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    packages = tomllib.loads(answer.stdout)["packages"]
    files = (package.get("wheels") or [package["sdist"]] for package in packages)
    return sum(max(file["size"] for file in of_package) for of_package in files)


rows = {}
for system in load_systems().values():
    for name, lock in system.locks.items():
        ending = "" if name == "cpu" else f".{name}"
        path = ENVS / f"{system.id}{ending}.txt"
        if path.exists() and path.name not in rows:
            digest = sha256(path.read_bytes()).hexdigest()
            rows[path.name] = (path.name, digest, bytes_of(path, lock.python))
            print(*rows[path.name])
with Path(ENVS, "sizes.csv").open("w", newline="", encoding="utf-8") as stream:
    csv.writer(stream, lineterminator="\n").writerows([("lock", "sha256", "bytes"), *rows.values()])
