import io
import sys

from reperf.data import bar as module
from reperf.data.bar import progress


def test_a_log_gets_sparse_lines_with_the_time_left(capsys, monkeypatch):
    now = 0.0
    monkeypatch.setattr(module.time, "monotonic", lambda: now)
    with progress("images to tfrecord", 100) as watch:
        for second in range(51):
            now = float(second)
            watch(2 * second)
        watch(100)
    assert capsys.readouterr().err.splitlines() == [
        "images to tfrecord: 20 of 100, about 40 s left",
        "images to tfrecord: 40 of 100, about 30 s left",
        "images to tfrecord: 60 of 100, about 20 s left",
        "images to tfrecord: 80 of 100, about 10 s left",
        "images to tfrecord: 100 in 50.0 s",
    ]


def test_a_terminal_gets_a_bar(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    with progress("images to tfrecord", 100) as watch:
        watch(40)
        watch(100)
    assert "images to tfrecord" in terminal.getvalue()
    assert "100/100" in terminal.getvalue()
