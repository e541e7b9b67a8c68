"""What is asked of all code that runs inside a framework's environment."""

import ast
import os
import re
import socket
import subprocess
import sys

from reperf.systems import SYSTEMS, TRAINERS
from trainers.contract import ports, settings


def test_the_oldest_python_of_a_framework_can_read_it():
    """Python 3.7: the lock's of TensorFlow 1.15. ruff finds more, and tests/systems runs it."""
    sources = [*TRAINERS.rglob("*.py"), *SYSTEMS.rglob("*.py")]
    assert len(sources) > 100
    for source in sources:
        ast.parse(source.read_text(encoding="utf-8"), str(source), feature_version=(3, 7))


def test_no_trainer_sets_a_variable_that_its_log_does_not_say():
    own = re.compile(r"os\.environ(\[[^]]*\] = |\.(setdefault|update)\()")
    found = {
        (path.name, line.strip())
        for path in TRAINERS.rglob("*.py")
        for line in path.read_text(encoding="utf-8").splitlines()
        if own.search(line) and path.name != "settings.py"
    }
    # Where OneFlow's own logs lie changes nothing.
    log = 'os.makedirs(os.environ.setdefault("GLOG_log_dir", LOGS), exist_ok=True)'
    assert found == {("before.py", log)}


def test_variables_that_are_set_already_stay_and_all_are_said(monkeypatch):
    monkeypatch.setattr(settings, "RECORDED", {})
    monkeypatch.setenv("REPERF_A", "1")
    monkeypatch.delenv("REPERF_B", raising=False)
    settings.variables({"REPERF_A": "2", "REPERF_B": "2"})
    assert settings.switched("benchmark", True) is True
    assert settings.RECORDED == {"REPERF_A": "1", "REPERF_B": "2", "benchmark": True}
    settings.variables({"REPERF_A": "2"}, anyway=True)
    assert (os.environ["REPERF_A"], settings.RECORDED["REPERF_A"]) == ("2", "2")
    monkeypatch.delenv("REPERF_B")


def test_a_process_below_a_limit_takes_no_more_and_says_what_the_limit_counts():
    code = """
from trainers.contract.process import limit_memory, peak_memory
limit_memory(600_000_000)
held = bytearray(200_000_000)
assert 200_000_000 < peak_memory() <= 600_000_000, peak_memory()
try:
    bytearray(500_000_000)
except MemoryError:
    print("full")
"""
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "full\n"


def test_a_port_is_claimed_once_and_is_none_that_the_kernel_gives_away(monkeypatch):
    claims = ports.claimed_ports(3)
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        assert other.getsockname()[1] not in ports._candidates()
    monkeypatch.setattr(ports, "_candidates", lambda: list(claims))
    claimed, listened_on, free = claims
    with claims[claimed], socket.socket() as listener:
        listener.bind(("127.0.0.1", listened_on))
        claims[listened_on].close()
        claims[free].close()
        assert list(ports.claimed_ports(1)) == [free]
