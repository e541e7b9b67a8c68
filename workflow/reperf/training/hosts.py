"""The hosts of a cluster without a batch system: whether each of them can train a report's runs.

python -m reperf.training.hosts NOTE    # on a host: what it is, and what a file holds there
"""

import json
import os
import secrets
import socket
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from subprocess import TimeoutExpired
from typing import Any

from reperf.config import Cluster, Report
from reperf.errors import ReperfError
from reperf.machine import cores, gpus
from reperf.programs import ended
from reperf.text import printable
from reperf.training.remote import SECONDS_TO_ANSWER, command_on, is_here
from reperf.training.slurm import check_shared

ANSWER_SECONDS = SECONDS_TO_ANSWER + 30
"""How long a host may take to answer, its keeper's start included."""
_CLOCKS = 2.0
"""Seconds that a host's clock may be off, beyond what its answer took."""
_BOOT = Path("/proc/sys/kernel/random/boot_id")


def check_hosts(report: Report) -> None:
    """Refuse hosts that do not answer, that are one, or that have another folder, clock or GPUs."""
    cluster = report.cluster
    assert cluster
    first = cluster.hosts[0]
    if not is_here(first):
        raise ReperfError(
            f"cluster.hosts: {first} is not this machine, {socket.gethostname()}; allowed: this "
            "machine first, where the runs are recorded"
        )
    check_shared(Path.cwd())
    secret, note = secrets.token_hex(), Path(f".reperf-hosts-{os.getpid()}")
    note.write_text(secret, encoding="utf-8")
    try:
        with ThreadPoolExecutor(32) as pool:
            found = pool.map(partial(_ask, cluster, note), cluster.hosts)
            answers = dict(zip(cluster.hosts, found, strict=True))
    finally:
        note.unlink()
    names: dict[tuple[str, str], str] = {}
    for host, answer in answers.items():
        machine = (answer["name"], answer["boot"])
        if machine in names:
            raise _unfit(host, f"the same machine as {names[machine]}", "each machine once")
        names[machine] = host
        if answer["note"] != secret:
            raise _unfit(host, f"{Path.cwd()} is another folder there", "one that all hosts share")
        if abs(answer["off"]) > _CLOCKS:
            raise _unfit(host, f"its clock is off by {answer['off']:.0f} s", "clocks kept by NTP")
        for part in report.of_each_device():
            devices = part.largest_shape[1]
            on_gpus = part.device == "cuda"
            there = answer["gpus"] if on_gpus else answer["cpus"] // report.threads_per_device
            if there < devices:
                what = "GPUs" if on_gpus else "devices of its CPUs"
                raise _unfit(host, f"{there} {what}; runs want {devices}", "hosts that have them")


def _unfit(host: str, why: str, allowed: str) -> ReperfError:
    return ReperfError(printable(f"cluster.hosts: {host}: {why}; allowed: {allowed}"))


def _ask(cluster: Cluster, note: Path, host: str) -> dict[str, Any]:
    """What a host says of itself, with `off`: seconds by which its clock is surely off."""
    command = [sys.executable, "-m", "reperf.training.hosts", str(note)]
    asked = time.time()
    try:
        command = command_on(cluster.remote, [host], command, f"--run={os.getpid()}")
        answer = ended(command, time_limit=ANSWER_SECONDS)
    except TimeoutExpired:
        raise _unfit(host, f"no answer in {ANSWER_SECONDS:g} s", "hosts that answer") from None
    try:
        known: dict[str, Any] = json.loads(answer.stdout)
    except ValueError:
        lines = list(filter(str.strip, (answer.stderr + answer.stdout).splitlines()))
        lines = lines[:-1] if lines[1:] and lines[-1].startswith(f"reperf: {host} ended") else lines
        allowed = f"hosts that `{cluster.remote}` reaches without a prompt"
        raise _unfit(host, " | ".join(lines) or "no answer", allowed) from None
    late, early = known["time"] - time.time(), known["time"] - asked
    return known | {"off": late if late > 0 else early if early < 0 else 0.0}


def main() -> None:
    note = Path(sys.argv[1])
    answer = {
        "name": socket.gethostname(),
        "boot": _BOOT.read_text(encoding="ascii") if _BOOT.exists() else "",
        "time": time.time(),
        "note": note.read_text(encoding="utf-8") if note.exists() else "",
    }
    print(json.dumps(answer | {"gpus": len(gpus()), "cpus": cores()}))


if __name__ == "__main__":
    main()
