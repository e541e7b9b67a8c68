"""Calls of Snakemake and of reperf in forks of one process that has imported what they need.

A call that imports Snakemake anew takes a second of CPU longer than one that has nothing to do. The
library of reperf is not imported here: each benchmark has its own copy.
"""

import importlib
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Sequence
from functools import partial
from pathlib import Path

_servers: dict[tuple, subprocess.Popen] = {}
"""One server for each test process and each place, such as a namespace, that it enters."""


def run(
    words: list[str],
    folder: Path,
    environment: dict[str, str],
    timeout: float,
    enter: Sequence[str] = (),
) -> subprocess.CompletedProcess:
    """Call Snakemake or reperf.

    Args:
        words: the command line.
        folder: where it works.
        environment: its environment variables.
        timeout: seconds.
        enter: what begins a command line that runs elsewhere, such as in other namespaces.

    Returns:
        What it wrote to its standard output and error, in `stdout`.

    Raises:
        subprocess.TimeoutExpired: it was killed after so many seconds.
    """
    place = os.getpid(), *enter
    server = _servers.get(place)
    if server is None or server.poll() is not None:
        server = _servers[place] = subprocess.Popen(
            [*enter, sys.executable, __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
    with tempfile.NamedTemporaryFile("r", errors="replace") as said:
        asked = [words, str(folder), environment, timeout, said.name]
        try:
            server.stdin.write(json.dumps(asked) + "\n")
            server.stdin.flush()
            status = json.loads(server.stdout.readline())
        except BaseException:  # the test's own time is over: nobody waits for this answer
            _servers.pop(place).terminate()
            raise
        text = said.read()
    if status is None:
        raise subprocess.TimeoutExpired(words, timeout, text)
    return subprocess.CompletedProcess(words, status, text)


PRELOADED = (
    *("snakemake.cli", "snakemake.api", "snakemake.logging", "snakemake.workflow"),
    *("snakemake_executor_plugin_slurm", "snakemake.executors.local", "snakemake.scheduling"),
    *("snakemake.report", "nbformat.v4", "smart_open"),  # each call's, whatever it is asked for
    *("jinja2", "pandas", "psutil", "pulp", "pydantic", "rich.live", "rich.progress", "yaml"),
)
"""What Snakemake's command line, its plugins and the library import of others."""
REGISTRIES = (
    "snakemake_interface_executor_plugins.registry.ExecutorPluginRegistry",
    "snakemake_interface_logger_plugins.registry.LoggerPluginRegistry",
)


def _serve() -> None:
    installed = [path for path in sys.path if Path(path, "reperf").is_dir()]
    sys.path[:] = [path for path in sys.path if path not in installed]
    for name in PRELOADED:
        importlib.import_module(name)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # it ends when its input does
    for line in sys.stdin:
        words, folder, environment, timeout, said = json.loads(line)
        child = os.fork()
        if child == 0:
            sys.path += installed
            sys.exit(_call(words, folder, environment, said))
        signal.signal(signal.SIGTERM, partial(_end, child))
        status = _status(child, timeout)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        print(json.dumps(status), flush=True)


def _end(child: int, *_: object) -> None:
    """End with what a call has started."""
    os.killpg(child, signal.SIGKILL)
    sys.exit(1)


def _call(words: list[str], folder: str, environment: dict[str, str], said: str) -> object:
    """Be a new process that makes a call; returns what sys.exit takes."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    os.setsid()
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    files = (os.open(os.devnull, os.O_RDONLY), *[os.open(said, os.O_WRONLY | os.O_APPEND)] * 2)
    for number, file in enumerate(files):
        os.dup2(file, number)
    # As at the start of a Python: the folder comes first, then PYTHONPATH.
    sys.path[:1] = [folder, *environment.get("PYTHONPATH", "").split(os.pathsep)]
    sys.argv = words
    for name in REGISTRIES:
        module, _, registry = name.rpartition(".")
        getattr(sys.modules[module], registry)().collect_plugins()  # the benchmark's own, too
    try:
        return importlib.import_module(f"{words[0]}.cli").main(words[1:])
    except SystemExit as end:
        return end.code
    except BaseException:
        traceback.print_exc()
        return 1


def _status(child: int, timeout: float) -> int | None:
    """The exit status of a process; None: it took too long, and was killed with its group."""
    watched = os.pidfd_open(child)
    ended = select.select([watched], [], [], timeout)[0]
    os.close(watched)
    if not ended:
        os.killpg(child, signal.SIGKILL)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return status if ended else None


if __name__ == "__main__":
    _serve()
