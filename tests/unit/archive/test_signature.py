"""Who made an archive: a signature by OpenSSH, whose ssh-keygen is real."""

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from reperf.cli import main

from tests.helpers.refusal import cannot_run


@pytest.fixture
def key(tmp_path) -> Path:
    """A private key without a passphrase; beside it, `signers` knows it as ada@example.org."""
    if not shutil.which("ssh-keygen"):
        cannot_run("ssh-keygen: apt-get install openssh-client")
    path = tmp_path / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", path], check=True)
    public = path.with_name("key.pub").read_text()
    path.with_name("signers").write_text(f"ada@example.org {public}")
    return path


@pytest.fixture
def sign(archived, capsys) -> Callable[..., tuple[int, str]]:
    """Sign the archive: the status, and what is printed."""

    def call(key: Path | str) -> tuple[int, str]:
        status = main(["archive", "sign", str(archived), "--key", str(key)])
        return status, "".join(capsys.readouterr())

    return call


@pytest.fixture
def verified(archived, capsys) -> Callable[[], str]:
    """Verify the archive and its signature: the one line that is printed."""

    def call() -> str:
        status = main(["archive", "verify", str(archived), "--signers", "signers"])
        said = capsys.readouterr()
        assert (status == 0) == (not said.err)
        [line] = (said.out + said.err).splitlines()
        return line

    return call


def test_a_signature_names_who_made_it_and_no_other_is_taken(key, archived, sign, verified):
    for _ in range(2):
        assert sign(key) == (0, f"{archived}.sig: signs {archived}\n")
        assert verified().endswith("; signed by ada@example.org")
    Path("other").write_text("other bytes")
    for namespace, file in (("reperf", "other"), ("git", str(archived))):
        command = ["ssh-keygen", "-q", "-Y", "sign", "-n", namespace, "-f", key]
        with Path(file).open("rb") as stream:
            made = subprocess.run(command, stdin=stream, capture_output=True, check=True)
        Path(f"{archived}.sig").write_bytes(made.stdout)
        assert verified().startswith(f"reperf: {archived}: ssh-keygen -Y verify: ")
    Path("signers").write_text("")  # a stranger's
    assert verified().startswith(f"reperf: {archived}: ssh-keygen -Y find-principals: ")


def test_what_is_missing_for_a_signature_is_one_line(key, archived, sign, verified, monkeypatch):
    assert verified() == f"reperf: {archived}.sig: cannot be read: No such file or directory"
    assert sign("nowhere")[1].startswith(f"reperf: {archived}: ssh-keygen -Y sign: ")
    monkeypatch.setenv("PATH", "")
    status, said = sign(key)
    assert status == 1
    assert "ssh-keygen: No such file or directory; allowed: OpenSSH" in said
    assert not Path(f"{archived}.sig").exists()
