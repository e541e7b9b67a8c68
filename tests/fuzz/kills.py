"""Kill the workflow at random moments of every stage, and see what is left; by hand, and in CI.

    python tests/fuzz/kills.py [MOMENTS] [SEED]

The first pass begins in an empty folder. In most of the others the runs, or the published figures,
are there already, because they take long. Call after call is killed in a stage further on, by
one of four signals, sent to Snakemake alone or to its process group; the last call of a pass runs
to its end. After each kill all processes must end, no half file may have a final name, and finished
runs must stay as they are; the last call must finish, and find nothing to tidy up.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from random import Random
from xml.etree import ElementTree

import psutil
from google_crc32c import value as crc32c
from PIL import Image
from reperf.archive.container import verified
from reperf.data.kind import Manifest
from reperf.files import sha256

sys.path.insert(0, str(Path(__file__).parents[2]))
from tests.helpers.small_benchmark import ROOT, TOY, new_benchmark

# Each stage, a file that this call writes at its beginning, mostly its log, and for how many
# seconds from then on a kill may come.
STAGES = {
    "plan": ("", 4),
    "plans are written": ("results/plan.json", 0.2),
    "draw_published_figures": ("logs/draw_published_figures.log", 12),
    "make_set": ("logs/make_set/embedded/images/manifest.json.log", 5),
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
NAMES = list(STAGES)
SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
SECONDS_TO_END = 300  # Snakemake itself waits for its jobs when it is told to end
MARK = "REPERF_KILLED_IN"


class Fuzz:
    """A folder in which the workflow is killed again and again, and what was seen.

    Args:
        top: for the folder, and for copies of it that show a fault.
        seed: of all that is chosen by chance.
    """

    def __init__(self, top: Path, seed: int) -> None:
        self.dice = Random(seed)
        self.counts: Counter[str] = Counter()
        self.faults: list[str] = []
        self._benchmark = new_benchmark(top / "benchmark", ROOT / ".envs")
        self._folder = self._benchmark.folder
        self._finished: dict[Path, bytes] = {}
        self._ways: list[tuple[signal.Signals, str]] = []
        self._titles, self._called = 0, 0.0
        self._configure()

    def one_pass(self, moments: int) -> None:
        """Kill call after call, up to so many times; then let one finish, and clean up."""
        stages = [name for name in NAMES for _ in range(self.dice.choice((1, 1, 2, 3)))]
        for at in sorted(self.dice.sample(range(len(stages)), min(moments, len(stages)))):
            if not self._kill_in(stages[at]):
                break
        self._finish()
        self._begin()

    def _begin(self) -> None:
        """Remove what the last pass has built; mostly all but what takes long."""
        self._finished.clear()
        all_anew = self.dice.random() < 0.3
        for name in ["archive", "results/suites", *(["data/embedded", "results"] * all_anew)]:
            shutil.rmtree(self._folder / name, ignore_errors=True)
        for path in [*self._folder.glob("figures/small*"), *self._folder.glob("results/[!.]*.*")]:
            path.unlink()
        if all_anew and self.dice.random() < 0.3:
            shutil.rmtree(self._folder / "figures/published", ignore_errors=True)

    def _configure(self) -> None:
        """Ask for the same runs under another title: plans are written anew."""
        self._titles += 1
        suite = TOY["suites"][0] | {"repeats": 1, "shape": {"milliseconds": 300}}
        data = {"name": "embedded", "parts": 16}
        self._benchmark.configure(title=f"title {self._titles}", suites=[suite], data=data)

    def _call(self) -> subprocess.Popen:
        """Begin the workflow as `make report` does, in a process group of its own."""
        self._called = time.time()
        with (self._folder / "said.txt").open("w") as said:
            return subprocess.Popen(
                self._benchmark.command(),
                cwd=self._folder,
                env=self._benchmark.environment | {MARK: str(self._folder)},
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def _kill_in(self, stage: str) -> bool:
        """Kill a call in a stage, or in the next one that it comes to, and look at what is left.

        Returns:
            Whether there was anything to do.
        """
        shutil.rmtree(self._folder / "logs", ignore_errors=True)
        if stage == "plans are written":
            self._configure()
        workflow = self._call()
        while workflow.poll() is None and NAMES.index(self._last_stage()) < NAMES.index(stage):
            time.sleep(0.02)
        stage = self._last_stage(stage)
        # Under load, a stage takes longer.
        delay = self.dice.uniform(0, STAGES[stage][1]) * max(1, os.getloadavg()[0] / os.cpu_count())
        try:
            workflow.wait(delay)
        except subprocess.TimeoutExpired:
            pass
        else:
            self._judge(f"{stage}: the call", [self._said()] * (workflow.returncode != 0))
            return False
        stage = self._last_stage(stage)  # it may have gone on
        if not self._ways:  # each as often as any other
            self._ways = list(product(SIGNALS, ("alone", "group")))
            self.dice.shuffle(self._ways)
        number, target = self._ways.pop()
        known = {path: path.read_bytes() for path in self._finished_runs()}
        (os.kill if target == "alone" else os.killpg)(workflow.pid, number)
        self.counts[stage] += 1
        troubles = [*self._wait_until_all_ended(workflow)]
        self._finished.update(known)
        what = f"{number.name} {target} in {stage} +{delay:.2f} s"
        self._judge(what, [*troubles, *self._changed(), *half_files(self._folder)])
        return True

    def _last_stage(self, chosen: str = "plan") -> str:
        """The last stage that has begun; the chosen one, if that may still go on beside it."""

        def has_begun(file: str) -> bool:
            written = (path.stat().st_mtime for path in self._folder.glob(file or "Snakefile"))
            return not file or any(time >= self._called for time in written)

        begun = [name for name, (file, _) in STAGES.items() if has_begun(file)]
        beside = chosen in begun and chosen == "draw_published_figures" and "train" not in begun
        return chosen if beside else begun[-1]

    def _wait_until_all_ended(self, workflow: subprocess.Popen) -> Iterator[str]:
        deadline = time.monotonic() + SECONDS_TO_END
        while (left := processes_in(self._folder)) and time.monotonic() < deadline:
            workflow.poll()  # buries it
            time.sleep(0.3)
        for process in left:
            yield f"process {process.pid} is left: {' '.join(process.info['cmdline'] or ())[:200]}"
            process.kill()
        workflow.wait()

    def _finished_runs(self) -> Iterator[Path]:
        """The records of the runs that ended well."""
        for path in self._folder.glob("results/runs/*/*/*/*/run.json"):
            if json.loads(path.read_text())["status"] == "ok":
                yield path

    def _changed(self) -> Iterator[str]:
        for path, content in self._finished.items():
            if not path.exists() or path.read_bytes() != content:
                yield f"{path.relative_to(self._folder)}: a finished run was run again"
        self._finished = {path: text for path, text in self._finished.items() if path.exists()}

    def _finish(self) -> None:
        """Let a call run to its end, and look at what it leaves."""
        workflow = self._call()
        workflow.wait()
        troubles = [*self._wait_until_all_ended(workflow), *self._changed()]
        troubles += half_files(self._folder)
        if workflow.returncode != 0:
            troubles.append(f"exit {workflow.returncode}: {self._said()}")
        troubles += [f"{path} is left" for path in self._folder.rglob("*.partial")]
        if (planned := self._benchmark.planned()) != {}:
            troubles.append(f"the next call would do {planned}")
        self._judge("the last call", troubles)

    def _said(self) -> str:
        return (self._folder / "said.txt").read_text()[-1500:]

    def _judge(self, what: str, troubles: list[str]) -> None:
        print(f"{time.strftime('%H:%M:%S')} {what}: {'; '.join(troubles) or 'whole'}", flush=True)
        for trouble in troubles:
            self.faults.append(f"{what}: {trouble}")
            kept = self._folder.with_name(f"fault-{len(self.faults)}")
            shutil.copytree(self._folder, kept, symlinks=True, ignore=lambda *_: [".envs"])


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
    """What is wrong with files that have a final name."""
    built = ("results", "data", "figures", "archive")
    for path in (path for name in built for path in folder.glob(f"{name}/**/*")):
        try:
            WHOLE.get(path.name, WHOLE.get(path.suffix, lambda path: None))(path)
        except Exception as error:
            yield f"{path.relative_to(folder)} is not whole: {type(error).__name__}: {error}"


def check_run(path: Path) -> None:
    # As plain JSON: this checkout does not know the toy that was trained.
    record = json.loads(path.read_text())
    if path.parent.parent.name != "tries":
        assert record["log_sha256"] == sha256(path.with_name("train.log")), "of another log"
        assert record["status"] == "ok", f"{record['status']}: {record['reason']}"


def check_manifest(path: Path) -> None:
    if path.parent.name == "images":
        images = len(list(path.parent.glob("train/*/*.JPEG")))
        assert images == json.loads(path.read_text())["images"], f"{images} images"
        return
    for part in Manifest.read(path).parts:
        content = (path.parent / part.name).read_bytes()
        assert (len(content), f"{crc32c(content):08x}") == (part.bytes, part.crc32c), part.name


def check_image(path: Path) -> None:
    with Image.open(path) as image:
        image.load()


def check_archive(path: Path) -> None:
    with verified(path):
        pass


def ends_with(end: str) -> Callable[[Path], None]:
    def check(path: Path) -> None:
        text = path.read_text()
        assert text.rstrip(" \n" if end.strip() else "").endswith(end) and text, "cut off"

    return check


WHOLE: dict[str, Callable[[Path], object]] = {
    "run.json": check_run,
    "manifest.json": check_manifest,
    ".json": lambda path: json.loads(path.read_text()),
    ".csv": ends_with("\n"),
    ".html": ends_with("</html>"),
    "complete.txt": ends_with("measured or explained"),
    ".svg": ElementTree.parse,
    **dict.fromkeys((".png", ".JPEG"), check_image),
    ".zip": check_archive,
}
"""How a file is looked at, by its name or how that ends."""


def main(moments: int, seed: int) -> None:
    # What a shell's background or nohup ignores, the calls would ignore as well.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    top = Path(tempfile.mkdtemp(prefix="kills-"))
    fuzz = Fuzz(top, seed)
    while (left := moments - fuzz.counts.total()) > 0:
        fuzz.one_pass(left)
    print(f"seed {seed}: {dict(fuzz.counts)}", *fuzz.faults, sep="\n")
    if fuzz.faults:
        sys.exit(f"{len(fuzz.faults)} faults; what they left is in {top}")
    shutil.rmtree(top)


if __name__ == "__main__":
    main(*map(int, [*sys.argv[1:], *("60", "1")[len(sys.argv) - 1 :]]))
