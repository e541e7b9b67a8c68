"""Programs that measuring does not need, and that a machine may lack."""

import subprocess
from collections.abc import Mapping, Sequence


def answer_of(command: Sequence[str], environment: Mapping[str, str] | None = None) -> str | None:
    """What a program prints; None if it is missing, cannot be started or fails.

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
