"""A run that was kept, and the suite that asks for it: a log and its record, and no training."""

from pathlib import Path

from reperf.config import Run, Suite
from reperf.files import sha256
from reperf.host import Environment, Host
from reperf.records.run_record import RunRecord

SUITE = Suite(
    name="small",
    workload="resnet50",
    precision="fp32",
    batch_size=8,
    shape={"image_size": 64},
    systems=["pytorch"],
)
RUN = Run(
    suite="small",
    system="pytorch",
    variant=None,
    workload="resnet50",
    precision="fp32",
    batch_size=8,
    topology="1n2g",
    repeat=1,
    iterations=120,
    print_every=20,
    shape={"image_size": 64},
    input="synthetic",
    data=None,
    device="cpu",
    threads=1,
    seed=1,
)


def record_of(run: Run = RUN, **changes: object) -> RunRecord:
    """The record of a run that ended well, with some fields changed."""
    usual = {
        "status": "ok",
        "run": run,
        "attempt": 1,
        "command": (),
        "variables": {},
        "environment": Environment(lock="", lock_sha256="", python="3.11", packages={}),
        "git_commit": None,
        "git_dirty": None,
        "host": Host(hostname="h", cpu="c", cores=2, memory_bytes=1, os="o", kernel="k"),
        "started": "",
        "ended": "",
        "seconds": 1.0,
        "exit_code": 0,
        "log_sha256": "",
    }
    return RunRecord(**usual | changes)


def kept_run(folder: Path, lines: list[str], **record: object) -> Path:
    """A folder with a log of these lines and the record of RUN, or of what `record` says."""
    folder.mkdir(parents=True)
    log = folder / "train.log"
    log.write_text("".join(line + "\n" for line in lines))
    record_of(**{"log_sha256": sha256(log)} | record).write(folder / "run.json")
    return folder
