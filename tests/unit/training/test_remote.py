"""A command on several hosts; a shell stands for ssh, and all hosts are this machine."""

import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from reperf.training.remote import command_on, is_here, reach

from tests.helpers.waiting import wait_until


@pytest.fixture
def here(tmp_path: Path, monkeypatch) -> Path:
    """A folder of its own, also for the lock of this machine, which another test may have."""
    monkeypatch.chdir(tmp_path)
    for name, value in (("TMPDIR", tmp_path), ("KEPT", 'it\'s "$HOME"'), ("SSH_CONNECTION", "no")):
        monkeypatch.setenv(name, str(value))
    return tmp_path


SHELL = """sh -c 'shift; exec "$@"' sh {host}"""
"""Reaches any host, which is this machine."""
ENDS_LATE = (  # the second host
    """sh -c 'at=$1; shift; "$@"; code=$?; [ $at = far1 ] || sleep 6; exit $code' sh {host}"""
)
GREETS = "sh -c 'echo Welcome; printf No.line.end; shift; {}' sh {{host}}"
NO_ROUTE = "sh -c 'echo no route >&2; exit 255'"
GREETING = "0: Welcome\n0: No.line.end\n"
LOST = "reperf: far ended with status 255; sh .* did not reach it, or lost it\n"
SHOWN = "os.environ['KEPT'], os.environ.get('SSH_CONNECTION')"
SHOW = [sys.executable, "-c", f"import os; print({{node_rank}}, '{{host}}', {SHOWN})"]
LINES = [sys.executable, "-c", "for n in range(200): print(n, 'x' * 5000)"]
WAIT = "until [ -s other ]; do sleep 0.1; done"
SCRIPT = f'if [ {{node_rank}} = 0 ]; then {WAIT}; exec "$@"; fi; echo $$ > other; sleep 60'
FIRST = ["sh", "-c", SCRIPT, "sh", "sh", "-c"]
"""Beginning of a command that host 0 runs while the others sleep."""
MISSING = "No such file or directory\n"
TWO = ["far1", "far2"]


@pytest.mark.parametrize(
    ("remote", "hosts", "command", "ends"),
    [
        # Every host gets its number, its name and the caller's variables.
        (SHELL, ["a@far1"], SHOW, (0, re.escape('0: 0 far1 it\'s "$HOME" None\n'))),
        # Lines stay whole; the second and the third find the first there: all are of one run.
        (SHELL, [*TWO, "far3"], LINES, (0, r"([012]: \d+ x{5000}\n){600}")),
        # The first bad end ends all.
        (SHELL, TWO, [*FIRST, "exit 7"], (7, "")),
        (SHELL, TWO, [*FIRST, "kill -9 $$"], (137, "")),
        # The other host takes longer to end than from one beat to the next.
        (ENDS_LATE, TWO, [*FIRST, "exit 7"], (7, "")),
        (SHELL, ["far"], ["/no"], (127, f"0: reperf: .*: /no: {MISSING}")),
        # A host that is not reached is named; its greeting is shown if nothing else comes.
        (NO_ROUTE, ["far"], ["true"], (255, f"0: no route\n{LOST}")),
        (GREETS.format('exec "$@"'), ["far"], ["echo", "up"], (0, "0: up\n")),
        (GREETS.format("exit 255"), ["far"], ["true"], (255, f"{GREETING}{LOST}")),
        ("no-ssh", ["far"], ["true"], (1, f"no-ssh: {MISSING}")),
    ],
)
def test_a_command_on_hosts_ends_with_all_of_them(here, remote, hosts, command, ends):
    asked = command_on(remote, hosts, command, "--label")
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    answer = subprocess.run(asked, check=False, timeout=60, **streams)
    assert answer.returncode == ends[0]
    assert re.fullmatch(ends[1], answer.stdout), answer.stdout[:1000]
    others = [int(file.read_text()) for file in here.glob("other")]
    assert len(others) == (SCRIPT in command)
    wait_until(lambda: not any(map(psutil.pid_exists, others)), "the others to be buried", 20)


def test_ssh_asks_nobody_and_the_host_stands_where_the_words_say():
    assert reach("ssh -p 22", "node1")[-3:] == ["-p", "22", "node1"]
    assert "-oBatchMode=yes" in reach("ssh -p 22", "node1")
    assert reach("kubectl exec -i {host} --", "pod-1") == ["kubectl", "exec", "-i", "pod-1", "--"]


def test_this_machine_is_known_by_its_names_and_addresses():
    names = ("127.0.0.1", f"{os.environ.get('USER', 'root')}@localhost", socket.gethostname())
    assert all(map(is_here, names))
    assert not any(map(is_here, ("192.0.2.1", "no.such.host.invalid")))
