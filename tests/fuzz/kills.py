"""Kill the workflow at random moments of every stage, and see what is left; by hand, and in CI.

    python tests/fuzz/kills.py 200 1                        # as many moments, and a seed
    python tests/fuzz/kills.py 20 1 --stages environment    # build one, and kill that

The first pass begins in an empty folder. In most of the others the runs, or the published figures,
are there already, because they take long. Call after call is killed in a stage further on, by
one of four signals, sent to Snakemake alone or to its process group; the last call of a pass runs
to its end. After each kill all processes must end, no half file may have a final name, and finished
runs must stay as they are; the last call must finish, and find nothing to tidy up.
"""

import argparse
import json
import os
import random
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from xml.etree import ElementTree

import google_crc32c
import psutil
from PIL import Image
from reperf.archive.container import verified
from reperf.data.kind import Manifest
from reperf.files import sha256
from reperf.host import Environment

sys.path.insert(0, str(Path(__file__).parents[2]))
from tests.helpers.small_benchmark import ROOT, TOY, Benchmark, new_benchmark

# Each stage, a file that this call writes at its beginning, mostly its log, and for how many
# seconds from then on a kill may come.
STAGES = {
    "plan": ("", 4),
    "plans are written": ("results/plan.json", 0.2),
    "draw_published_figures": ("logs/draw_published_figures.log", 12),
    "make_set": ("logs/make_set/embedded/images/manifest.json.log", 5),
    "environment": ("logs/envs/stand-in-*.log", 2),
    "convert": ("logs/convert/embedded/tfrecord.log", 0.7),
    "train": ("logs/train/small/stand-in/1n1g/1.log", 3),
    "train on two": ("logs/train/small/stand-in/1n2g/1.log", 4),
    "measure": ("logs/measure/small.log", 1),
    "summarise": ("logs/summarise/small.log", 1.5),
    "join_tables": ("logs/join_tables.log", 0.7),
    "draw_figures": ("logs/draw_figures/small.log", 2.5),
    "archive": ("logs/archive/small.log", 0.7),
    "report": ("logs/report.log", 1.5),
    "complete": ("logs/complete.log", 0.7),
}
SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
TARGETS = ("alone", "group")
SECONDS_TO_END = 300  # Snakemake itself waits for its jobs when it is told to end
MARK = "REPERF_KILLED_IN"

whole: set[tuple] = set()


class Fault(Exception):
    """What must not be."""


@dataclass
class Fuzz:
    """A folder in which the workflow is killed again and again, and what was seen."""

    benchmark: Benchmark
    dice: random.Random
    counts: Counter = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)
    finished: dict[Path, bytes] = field(default_factory=dict)
    ways: list[tuple] = field(default_factory=list)
    titles: int = 0
    called: float = 0

    @property
    def folder(self) -> Path:
        return self.benchmark.folder

    def begin(self) -> None:
        """Remove what the last pass has built; mostly all but what takes long."""
        self.finished.clear()
        all_anew = self.dice.random() < 0.3 or not (self.folder / ".envs").is_symlink()
        names = ["archive", "results/suites", *(["data/embedded", "results", ".envs"] * all_anew)]
        for path in map(self.folder.joinpath, names):
            if not path.is_symlink():
                shutil.rmtree(path, ignore_errors=True)
        for path in [*self.folder.glob("figures/small*"), *self.folder.glob("results/[!.]*.*")]:
            path.unlink()
        if all_anew and self.dice.random() < 0.3:
            shutil.rmtree(self.folder / "figures/published", ignore_errors=True)

    def configure(self) -> None:
        """Ask for the same runs under another title: plans are written anew."""
        self.titles += 1
        suite = TOY["suites"][0] | {"repeats": 1, "shape": {"milliseconds": 300}}
        data = {"name": "embedded", "parts": 16}
        self.benchmark.configure(title=f"title {self.titles}", suites=[suite], data=data)

    def call(self) -> subprocess.Popen:
        """Begin the workflow as `make report` does, in a process group of its own."""
        self.called = time.time()
        with (self.folder / "said.txt").open("w") as said:
            return subprocess.Popen(
                self.benchmark.command(),
                cwd=self.folder,
                env=self.benchmark.environment | {MARK: str(self.folder)},
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def way(self) -> tuple[signal.Signals, str]:
        """A signal and its target; each pair as often as any other."""
        if not self.ways:
            self.ways = list(product(SIGNALS, TARGETS))
            self.dice.shuffle(self.ways)
        return self.ways.pop()

    def kill_in(self, stage: str) -> bool:
        """Kill a call in a stage, or in the next one that it comes to, and look at what is left.

        Returns:
            Whether there was anything to do.
        """
        names = list(STAGES)
        shutil.rmtree(self.folder / "logs", ignore_errors=True)
        if stage == "plans are written":
            self.configure()
        workflow = self.call()
        while workflow.poll() is None and names.index(self.last_stage()) < names.index(stage):
            time.sleep(0.02)
        stage = self.last_stage(stage)
        delay = self.dice.uniform(0, STAGES[stage][1]) * self.slowness()
        try:
            workflow.wait(delay)
        except subprocess.TimeoutExpired:
            pass
        else:
            if workflow.returncode != 0:
                self.fault(f"{stage}: a call failed: {self.said()}")
            return False
        stage = self.last_stage(stage)  # it may have gone on
        number, target = self.way()
        known = {path: path.read_bytes() for path in self.finished_runs()}
        send = os.kill if target == "alone" else os.killpg
        send(workflow.pid, number)
        self.counts[stage, number.name, target] += 1
        begun = time.monotonic()
        troubles = [*self.wait_until_all_ended(workflow)]
        ended = time.monotonic() - begun
        self.finished.update(known)
        troubles += [*self.changed(), *half_files(self.folder)]
        what = "; ".join(troubles) or f"all ended after {ended:.1f} s, all is whole"
        say(f"{number.name} {target} in {stage} +{delay:.2f} s: {what}")
        for trouble in troubles:
            self.fault(f"{number.name} {target} in {stage} +{delay:.2f} s: {trouble}")
        return True

    @staticmethod
    def slowness() -> float:
        """How many times as long as alone a program takes on this machine now, about."""
        return max(1, os.getloadavg()[0] / os.cpu_count())

    def last_stage(self, chosen: str = "plan") -> str:
        """The last stage that has begun; the chosen one, if that may still go on beside it."""
        begun = [name for name, (file, _) in STAGES.items() if self.has_begun(file)]
        beside = chosen in begun and chosen == "draw_published_figures" and "train" not in begun
        return chosen if beside else begun[-1]

    def has_begun(self, file: str) -> bool:
        """Whether this call has written the file of a stage."""
        written = (path.stat().st_mtime for path in self.folder.glob(file or "Snakefile"))
        return not file or any(time >= self.called for time in written)

    def wait_until_all_ended(self, workflow: subprocess.Popen) -> Iterator[str]:
        deadline = time.monotonic() + SECONDS_TO_END
        while (left := processes_in(self.folder)) and time.monotonic() < deadline:
            workflow.poll()  # buries it
            time.sleep(0.3)
        for process in left:
            yield f"process {process.pid} is left: {' '.join(process.info['cmdline'] or ())[:200]}"
            process.kill()
        workflow.wait()

    def finished_runs(self) -> Iterator[Path]:
        """The records of the runs that ended well."""
        for path in self.folder.glob("results/runs/*/*/*/*/run.json"):
            if json.loads(path.read_text())["status"] == "ok":
                yield path

    def changed(self) -> Iterator[str]:
        for path, content in self.finished.items():
            if not path.exists() or path.read_bytes() != content:
                yield f"{path.relative_to(self.folder)}: a finished run was run again"
        self.finished = {path: content for path, content in self.finished.items() if path.exists()}

    def finish(self) -> None:
        """Let a call run to its end, and look at what it leaves."""
        begun = time.monotonic()
        workflow = self.call()
        workflow.wait()
        troubles = [*self.wait_until_all_ended(workflow), *self.changed(), *half_files(self.folder)]
        if workflow.returncode != 0:
            troubles.append(f"exit {workflow.returncode}: {self.said()}")
        troubles += [f"{path} is left" for path in self.folder.rglob("*.partial")]
        if (planned := self.benchmark.planned()) != {}:
            troubles.append(f"the next call would do {planned}")
        say(
            f"finished in {time.monotonic() - begun:.0f} s: {'; '.join(troubles) or 'all is whole'}"
        )
        for trouble in troubles:
            self.fault(f"the last call: {trouble}")

    def said(self) -> str:
        return (self.folder / "said.txt").read_text()[-1500:]

    def fault(self, what: str) -> None:
        self.faults.append(what)
        kept = self.folder.with_name(f"fault-{len(self.faults)}")
        shutil.copytree(self.folder, kept, symlinks=True, ignore=shutil.ignore_patterns(".envs"))


def say(line: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {line}", flush=True)


def processes_in(folder: Path) -> list[psutil.Process]:
    """The processes that a call in a folder has started, and those that work there."""
    found = []
    for process in psutil.process_iter(["cwd", "cmdline", "environ", "status"]):
        info = process.info
        works_here = info["cwd"] is not None and Path(info["cwd"]).is_relative_to(folder)
        started_here = (info["environ"] or {}).get(MARK) == str(folder)
        if (works_here or started_here) and info["status"] != psutil.STATUS_ZOMBIE:
            found.append(process)
    return found


def half_files(folder: Path) -> Iterator[str]:
    """What is wrong with files that have a final name; a picture is looked at once."""
    checks = {
        "results/**/plan.json": lambda path: json.loads(path.read_text()),
        "data/*/plan.json": lambda path: json.loads(path.read_text()),
        "results/runs/*/*/*/*/run.json": check_run,
        "results/runs/*/*/*/*/tries/*/run.json": lambda path: json.loads(path.read_text()),
        "results/**/*.csv": check_table,
        "results/report.html": lambda path: check_end(path, "</html>"),
        "results/report.md": lambda path: check_end(path, ""),
        "results/complete.txt": lambda path: check_end(path, "measured or explained"),
        "figures/**/*.svg": ElementTree.parse,
        "figures/**/*.png": check_image,
        "archive/*.zip": check_archive,
        "data/*/*/manifest.json": check_manifest,
        "data/*/images/train/*/*.JPEG": check_image,
        "data/*/tfrecord/part-?????": check_part,
    }
    if not (folder / ".envs").is_symlink():  # it is this folder's own
        checks[".envs/*/environment.json"] = check_environment
    for pattern, check in checks.items():
        for path in folder.glob(pattern):
            state = path.stat()
            if (seen := (check, path, state.st_ino, state.st_mtime_ns)) in whole:
                continue
            try:
                check(path)
                if check is check_image or check is ElementTree.parse:
                    whole.add(seen)
            except Exception as error:
                yield f"{path.relative_to(folder)} is not whole: {type(error).__name__}: {error}"


def check_run(path: Path) -> None:
    # As plain JSON: this checkout does not know the toy that was trained.
    record = json.loads(path.read_text())
    if record["log_sha256"] != sha256(path.with_name("train.log")):
        raise Fault("not the record of the log beside it")
    if record["status"] != "ok":
        raise Fault(f"{record['status']}: {record['reason']}")


def check_table(path: Path) -> None:
    lines = path.read_text().split("\n")
    if lines[-1] or len({line.count(",") for line in lines[:1]}) != 1 or len(lines) < 3:
        raise Fault("cut off")


def check_end(path: Path, end: str) -> None:
    text = path.read_text().rstrip()
    if not text or not text.endswith(end):
        raise Fault("cut off")


def check_image(path: Path) -> None:
    with Image.open(path) as image:
        image.load()


def check_archive(path: Path) -> None:
    with verified(path):
        pass


def check_manifest(path: Path) -> None:
    if path.parent.name == "images":
        images = len(list(path.parent.glob("train/*/*.JPEG")))
        if images != json.loads(path.read_text())["images"]:
            raise Fault(f"{images} images")
        return
    for part in Manifest.read(path).parts:
        content = (path.parent / part.name).read_bytes()
        if (len(content), f"{google_crc32c.value(content):08x}") != (part.bytes, part.crc32c):
            raise Fault(f"{part.name} is another one")


def check_part(path: Path) -> None:
    content, at = path.read_bytes(), 0
    while at < len(content):
        (size,) = struct.unpack_from("<Q", content, at)
        message = content[at + 12 : at + 12 + size]
        (masked,) = struct.unpack_from("<I", content, at + 12 + size)
        turned = (masked - 0xA282EAD8) % 2**32
        if (turned >> 17 | turned << 15) % 2**32 != google_crc32c.value(message):
            raise Fault(f"a record at {at} is another one")
        at += 16 + size


def check_environment(path: Path) -> None:
    Environment.model_validate_json(path.read_bytes())
    python = path.parent / "bin" / "python"
    subprocess.run([python, "-c", "import numpy"], check=True, capture_output=True)


def stages_of_a_pass(dice: random.Random, stages: list[str]) -> list[str]:
    """The stages in their order, some of them more than once."""
    return [name for name in stages for _ in range(dice.choice((1, 1, 2, 3)))]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("moments", type=int)
    parser.add_argument("seed", type=int)
    parser.add_argument("--folder", type=Path, help="go on in the one that a call has left")
    parser.add_argument(
        "--stages",
        nargs="+",
        choices=STAGES,
        default=[name for name in STAGES if name != "environment"],
        help="where to kill; left out: all, with an existing environment",
    )
    options = parser.parse_args()
    # What a shell's background or nohup ignores, the calls would ignore as well.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    dice = random.Random(options.seed)
    top = Path(tempfile.mkdtemp(prefix="kills-"))
    if options.folder:
        options.folder.rename(top / "benchmark")
        fuzz = Fuzz(Benchmark(top / "benchmark"), dice)
    else:
        fuzz = Fuzz(new_benchmark(top / "benchmark", ROOT / ".envs"), dice)
    if "environment" in options.stages:
        (fuzz.folder / ".envs").unlink()
    fuzz.configure()
    while (left := options.moments - sum(fuzz.counts.values())) > 0:
        stages = stages_of_a_pass(dice, options.stages)
        chosen = sorted(dice.sample(range(len(stages)), min(left, len(stages))))
        for number in chosen:
            if not fuzz.kill_in(stages[number]):
                break
        fuzz.finish()
        fuzz.begin()
    print_summary(fuzz)
    if fuzz.faults:
        sys.exit(f"{len(fuzz.faults)} faults; what they left is in {top}")
    shutil.rmtree(top)


def print_summary(fuzz: Fuzz) -> None:
    print(f"{sum(fuzz.counts.values())} moments")
    ways = list(product([number.name for number in SIGNALS], TARGETS))
    print(" " * 24 + "".join(f"{name[3:]:>6}/{target[0]}" for name, target in ways))
    for stage in STAGES:
        print(f"{stage:24}" + "".join(f"{fuzz.counts[stage, *way]:8}" for way in ways))
    sums = Counter()
    for (_, *way), count in fuzz.counts.items():
        sums[tuple(way)] += count
    print(f"{'sum':24}" + "".join(f"{sums[way]:8}" for way in ways))
    for fault in fuzz.faults:
        print(f"FAULT {fault}")


if __name__ == "__main__":
    main()
