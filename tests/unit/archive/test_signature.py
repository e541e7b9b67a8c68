"""Who made an archive: a signature by OpenSSH, whose ssh-keygen is real."""

import shutil
import subprocess
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
def signed(key, archived, capsys) -> Path:
    assert main(["archive", "sign", str(archived), "--key", str(key)]) == 0
    assert capsys.readouterr().out == f"{archived}.sig: signs {archived}\n"
    return archived


def verified(path: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """The one line with which an archive and its signature are verified, or refused."""
    status = main(["archive", "verify", str(path), "--signers", "signers"])
    said = capsys.readouterr()
    assert (status == 0) == (not said.err)
    [line] = (said.out + said.err).splitlines()
    return line


def test_a_signature_names_who_made_it(signed, capsys):
    assert verified(signed, capsys).endswith("; signed by ada@example.org")
    assert main(["archive", "sign", str(signed), "--key", "key"]) == 0  # once more
    capsys.readouterr()
    assert verified(signed, capsys).endswith("; signed by ada@example.org")


def test_a_signature_of_a_stranger_of_other_bytes_or_for_something_else_is_refused(
    signed, key, capsys
):
    Path("other").write_text("other bytes")
    for namespace, file in (("reperf", "other"), ("git", str(signed))):
        with Path(file).open("rb") as stream:
            made = subprocess.run(
                ["ssh-keygen", "-q", "-Y", "sign", "-n", namespace, "-f", key],
                stdin=stream,
                capture_output=True,
                check=True,
            )
        Path(f"{signed}.sig").write_bytes(made.stdout)
        assert verified(signed, capsys).startswith(f"reperf: {signed}: ssh-keygen -Y verify: ")
    Path("signers").write_text("")
    said = f"reperf: {signed}: ssh-keygen -Y find-principals: "
    assert verified(signed, capsys).startswith(said)


def test_what_is_missing_for_a_signature_is_one_line(archived, key, capsys, monkeypatch):
    assert verified(archived, capsys) == (
        f"reperf: {archived}.sig: cannot be read: No such file or directory"
    )
    assert main(["archive", "sign", str(archived), "--key", "nowhere"]) == 1
    assert capsys.readouterr().err.startswith(f"reperf: {archived}: ssh-keygen -Y sign: ")
    monkeypatch.setenv("PATH", "")
    assert main(["archive", "sign", str(archived), "--key", str(key)]) == 1
    assert "ssh-keygen: No such file or directory; allowed: OpenSSH" in capsys.readouterr().err
    assert not Path(f"{archived}.sig").exists()
