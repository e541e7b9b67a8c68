"""Programs that may be missing on a machine, and are not needed to measure."""

import subprocess
from collections.abc import Mapping, Sequence


def answer_of(command: Sequence[str], environment: Mapping[str, str] | None = None) -> str | None:
    """What a program prints; None if it is not there, cannot be started or fails.

    Args:
        environment: its environment variables; None for this process's own.
    """
    try:
        answer = subprocess.run(
            command,
            check=False,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
        )
    except OSError:
        return None
    return answer.stdout.decode(errors="replace") if answer.returncode == 0 else None
