"""A command on several hosts; a shell stands for ssh, and all hosts are this machine."""

import os
import re
import socket
import subprocess
import sys

import psutil
import pytest
from reperf.training.remote import command_on, is_here, reach

SHELL = """sh -c 'shift; exec "$@"' sh {host}"""
"""Reaches any host, which is this machine."""


@pytest.fixture(autouse=True)
def _locks(tmp_path, monkeypatch):
    """Another test may have this machine, too."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))


def answer_of(hosts, command, *options) -> subprocess.CompletedProcess:
    words = command_on(SHELL, hosts, command, *options)
    return subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)


def test_every_host_gets_its_number_and_its_name(monkeypatch):
    monkeypatch.setenv("KEPT", 'it\'s "$HOME"')
    monkeypatch.setenv("SSH_CONNECTION", "not for others")
    shown = "os.environ['KEPT'], os.environ.get('SSH_CONNECTION')"
    code = f"import os; print({{node_rank}}, '{{host}}', {shown})"
    answer = answer_of(["a@far1"], [sys.executable, "-c", code], "--label")
    assert (answer.returncode, answer.stdout) == (0, '0: 0 far1 it\'s "$HOME" None\n')


def test_lines_of_several_hosts_stay_whole():
    code = "for n in range(200): print(n, 'x' * 5000)"
    command = [sys.executable, "-c", code]
    # The second and the third find the first there: all are of one run.
    answer = answer_of(["far1", "far2", "far3"], command, "--label")
    lines = answer.stdout.splitlines()
    assert (answer.returncode, len(lines)) == (0, 600)
    assert all(re.fullmatch(r"[012]: \d+ x{5000}", line) for line in lines)


@pytest.mark.parametrize(
    ("command", "status", "line"),
    [
        (["sh", "-c", "exit 7"], 7, ""),
        (["sh", "-c", "kill -9 $$"], 137, ""),
        (["/no/such"], 127, "/no/such: No such file or directory"),
    ],
)
def test_the_first_bad_end_ends_all(tmp_path, command, status, line):
    script = f'if [ {{node_rank}} = 0 ]; then exec "$@"; fi; echo $$ > {tmp_path}/other; sleep 60'
    answer = answer_of(["far1", "far2"], ["sh", "-c", script, "sh", *command], "--label")
    if command == ["/no/such"]:
        answer = answer_of(["far1"], command, "--label")
    assert answer.returncode == status
    assert line in answer.stdout
    other = tmp_path / "other"
    assert not other.exists() or not psutil.pid_exists(int(other.read_text()))


def test_a_host_that_is_not_reached_is_named():
    words = command_on("sh -c 'echo no route >&2; exit 255'", ["far"], ["true"], "--label")
    answer = subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)
    assert answer.returncode == 255
    assert answer.stdout.splitlines()[0] == "0: no route"
    assert re.fullmatch(
        r"reperf: far ended with status 255; sh .* did not reach it, or lost it",
        answer.stdout.splitlines()[1],
    )


def test_a_hosts_greeting_is_shown_only_if_nothing_else_comes():
    greeting = "sh -c 'echo Welcome; printf No.line.end; shift; {0}' sh {{host}}"
    words = command_on(greeting.format('exec "$@"'), ["far"], ["echo", "up"], "--label")
    assert subprocess.run(words, capture_output=True, check=True).stdout == b"0: up\n"
    words = command_on(greeting.format("exit 255"), ["far"], ["echo", "up"])
    said = subprocess.run(words, capture_output=True, check=False, text=True).stdout
    assert said.startswith("Welcome\nNo.line.end\nreperf: far ended with status 255; ")


def test_a_command_that_is_not_there_is_one_line():
    words = command_on("no-such-command", ["far"], ["true"])
    answer = subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)
    assert answer.stderr == "no-such-command: No such file or directory\n"


def test_ssh_asks_nobody_and_the_host_stands_where_the_words_say():
    assert reach("ssh -p 22", "node1")[-3:] == ["-p", "22", "node1"]
    assert "-oBatchMode=yes" in reach("ssh -p 22", "node1")
    assert reach("kubectl exec -i {host} --", "pod-1") == ["kubectl", "exec", "-i", "pod-1", "--"]


def test_this_machine_is_known_by_its_names_and_addresses():
    assert is_here("127.0.0.1")
    assert is_here(f"{os.environ.get('USER', 'root')}@localhost")
    assert is_here(socket.gethostname())
    assert not is_here("192.0.2.1")
    assert not is_here("no.such.host.invalid")
