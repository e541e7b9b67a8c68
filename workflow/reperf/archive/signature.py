"""Who made a file: a signature beside it, which OpenSSH makes and checks.

Source: https://www.openssh.com/, ssh-keygen(1), `-Y sign` and `-Y verify`.
"""

import subprocess
from pathlib import Path

from reperf.errors import ReperfError
from reperf.files import reading, write_whole

_NAMESPACE = "reperf"  # what a signature is for: one that was made for anything else is refused


def signature_of(path: Path) -> Path:
    """Where the signature of a file lies."""
    return path.with_name(f"{path.name}.sig")


def sign(path: Path, key: Path) -> None:
    """Write the signature of a file beside it, by an SSH key; it may ask for a passphrase."""
    signature = _ssh_keygen(path, "sign", "-n", _NAMESPACE, "-f", str(key))
    write_whole(signature_of(path), signature)


def signer_of(path: Path, signers: Path) -> str:
    """Who signed a file; its signature lies beside it.

    Args:
        signers: whom you know: lines of a name and a public key, as ssh-keygen(1) describes them
            under ALLOWED SIGNERS.

    Raises:
        ReperfError: there is no signature, none of the signers made it, or the file has changed.
    """
    signature = str(signature_of(path))
    known = ("-f", str(signers), "-s", signature)
    with reading(signature):
        Path(signature).read_bytes()
    name = _ssh_keygen(path, "find-principals", *known).partition("\n")[0]
    _ssh_keygen(path, "verify", "-n", _NAMESPACE, "-I", name, *known)
    return name


def _ssh_keygen(path: Path, action: str, *options: str) -> str:
    """What ssh-keygen prints; it reads the file."""
    try:
        with path.open("rb") as stream:
            answer = subprocess.run(
                ["ssh-keygen", "-Y", action, *options],
                stdin=stream,
                capture_output=True,
                text=True,
                check=False,
            )
    except OSError as error:
        needed = "; allowed: OpenSSH 8.2 or later" if error.filename == "ssh-keygen" else ""
        raise ReperfError(f"{error.filename}: {error.strerror}{needed}") from None
    if answer.returncode != 0:
        why = (answer.stderr or answer.stdout).strip().splitlines()[-1:] or ["no reason given"]
        raise ReperfError(f"{path}: ssh-keygen -Y {action}: {why[0]}")
    return answer.stdout
