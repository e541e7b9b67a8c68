"""Programs that are asked something: they read nothing, and all that they print is kept."""

import subprocess
from collections.abc import Mapping, Sequence


def ended(
    command: Sequence[str],
    environment: Mapping[str, str] | None = None,
    time_limit: float | None = None,
) -> subprocess.CompletedProcess[str]:
    """How a program has ended, well or not.

    Raises:
        OSError: it is missing, or cannot be started.
        subprocess.TimeoutExpired: it took longer than `time_limit` seconds, and was killed.
    """
    return subprocess.run(
        command,
        check=False,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        timeout=time_limit,
    )


def answer_of(command: Sequence[str], environment: Mapping[str, str] | None = None) -> str | None:
    """What a program prints; None if it is missing, cannot be started or fails."""
    try:
        answer = ended(command, environment)
    except OSError:
        return None
    return answer.stdout if answer.returncode == 0 else None
