"""Build the environment of a lock."""

from reperf.builds import every_lock
from reperf.builds.lock_build import build_lock


def run(name: str) -> None:
    build_lock(every_lock()[name])
