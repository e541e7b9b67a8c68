"""Builds: how a system gets its framework, and what was really found in it.

A lock becomes an environment, a folder under .envs/ with a Python of its own. An image is pulled
once, and a folder under .images/ has what it lacks. For an existing environment, a folder under
.envs/ lists what is in it. A folder's name holds the digest of all that it is made
from, and environment.json is written last.
"""

from reperf.builds.build import (
    RECORD,
    Build,
    ImageBuild,
    LockBuild,
    SiteBuild,
    build_of,
    every_lock,
    read_environment,
    why_build,
)

__all__ = [
    "RECORD",
    "Build",
    "ImageBuild",
    "LockBuild",
    "SiteBuild",
    "build_of",
    "every_lock",
    "read_environment",
    "why_build",
]
