"""The largest batch that trains: what must be known for it, and the trials that find it.

A trial is a run of a few iterations in processes of its own, started and judged as every run is. It
has the run's own input, because loaders take memory, too, and the most devices that its suite asks
for, because collectives do: what was found then trains on all of the suite's topologies.

    results/largest/<entry>/<digest>/batch.json     a LargestBatch
    results/largest/<entry>/<digest>/trials/<n>/    the log and the record of each trial

The digest is that of all that the configuration and the trainer's code say about it. Equal digests
share one search, in whichever suites they are.

    python -m reperf.training.largest --run RUN --trainer SHA256 --cluster CLUSTER \
        --log logs/largest/....log --time-limit 600 --attempt 1 --retries 1
"""

import argparse
import json
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import psutil

from reperf.building.script import script
from reperf.builds import build_of, trainer_digest
from reperf.builds.built import digest_now
from reperf.config import Run
from reperf.config.words import MOST_SAMPLES
from reperf.errors import ReperfError
from reperf.layout import BATCH_FOLDER, BATCH_RECORD, RUN_LOG
from reperf.machine import gpus
from reperf.printed import gibibytes
from reperf.training.places import Place, place_of
from reperf.training.record import BatchTrial, LargestBatch, RunRecord
from reperf.training.search import Tried, largest
from reperf.training.train import last_lines, try_once
from reperf.training.tries import Cluster

ITERATIONS = 8
"""Of a trial: optimizers and collectives have taken their memory after two or three."""
CONFIRMATIONS = 2
"""Trials of the number that was found, beyond the one that found it: close to the limit chance has
its part, in where a process's memory lies or in what kernels a library picks."""
SHARE = 97
"""Percent of a memory limit that trials may take. How much address space the same program takes
differs by up to 2.5 % from run to run: what trained within the whole limit may not do so again."""
TIME_LIMITS = 4
"""How long a search may take, in time limits of a run; a trial may take one."""
MORE_MEMORY = 4
"""Times the memory limit, for a batch that crashes within it. No batch is tried that is larger than
four times one that trains, unless it is predicted to fit: it needs no more, if it lacks memory."""


@dataclass(frozen=True, eq=False)
class Search:
    """What is searched for, and where it is kept.

    Attributes:
        run: what is tried; its batch size is still `largest`.
        trainer: SHA-256 of all that decides how its system trains.
        cluster: where it starts.
    """

    run: Run
    trainer: str
    cluster: Cluster

    @property
    def folder(self) -> Path:
        """Where its trials lie, relative to the working folder."""
        content = [self.run.model_dump(mode="json"), self.trainer, self.cluster]
        text = json.dumps(content, sort_keys=True, separators=(",", ":"))
        digest = sha256(text.encode()).hexdigest()[:16]
        return Path(BATCH_FOLDER.format(entry=self.run.entry, digest=digest))

    @property
    def path(self) -> Path:
        """The file with what was found."""
        return self.folder / BATCH_RECORD


def search_for(run: Run, topology: str, cluster: Cluster) -> Search:
    """The search that gives a run its batch size.

    Args:
        run: as planned.
        topology: the one of its suite with the most devices.
        cluster: where it starts.
    """
    limit = run.memory_limit
    tried = run.model_copy(
        update={
            "suite": "largest",
            "memory_limit": limit if limit is None else limit * SHARE // 100,
            "topology": topology,
            "repeat": 1,
            "seed": 1,
            "iterations": ITERATIONS,
            # Runs, too, go on for some time without a look at the loss, which frees memory.
            "print_every": ITERATIONS,
        }
    )
    return Search(tried, trainer_digest(run), cluster)


def found_by(search: Search) -> tuple[LargestBatch | None, str]:
    """What a search has found; None if it must be made, and why it must be made again, if so."""
    path = search.path
    if not path.exists():
        return None, ""
    try:
        found = LargestBatch.read(path)
    except ReperfError as error:
        return None, str(error)
    image = digest_now(build_of(search.run))
    here = _models(gpus()) if search.run.device == "cuda" and search.cluster is None else ()
    if found.status not in ("ok", "oom"):
        return None, f"{path}: {found.status}: {found.reason}"
    if image and found.image != image:
        return None, f"{path}: the image has changed since"
    if here and found.gpus != here:
        return None, f"{path}: was found on other GPUs"
    return found, ""


class _NotFound(Exception):
    """A trial says nothing about memory.

    Args:
        record: the trial's.
        reason: what it says, one line.
    """

    def __init__(self, record: RunRecord, reason: str) -> None:
        super().__init__(reason)
        self.record = record


def find(search: Search, place: Callable[[Run], Place], *, time_limit: float, last: bool) -> None:
    """Search, and leave batch.json in the search's folder.

    Args:
        place: where the launchers of a run start.
        time_limit: seconds of one trial.
        last: whether to record a search that found nothing as its end.

    Raises:
        ReperfError: nothing was found and another search is allowed, or it was stopped from
            outside.
    """
    trials = _Trials(search, place, time_limit)
    shutil.rmtree(search.folder, ignore_errors=True)
    run, multiple = search.run, search.run.batch_multiple
    status, reason, memory = "ok", "", None
    try:
        trials.attempt(multiple)
        memory = memory_of(trials.records[0])
        batch = largest(trials.attempt, multiple=multiple, memory=memory, most=MOST_SAMPLES)
        while batch and not trials.confirm(batch):
            batch -= multiple
        if not batch:
            batch, status = multiple, "oom"
            reason = f"not even {multiple} samples per device fit: {trials.full}"
    except _NotFound as error:
        batch, status, reason = error.record.run.batch_size, error.record.status, str(error)
    if status not in ("ok", "oom", "unsupported") and not last:
        raise ReperfError(f"{search.folder}: {status}: {reason}")
    first = trials.records[0]
    LargestBatch(
        status=status,
        reason=reason,
        batch_size=batch,
        multiple=multiple,
        memory_bytes=memory,
        trials=tuple(
            _told(run, *trial) for trial in zip(trials.records, trials.folders, strict=True)
        ),
        run=run.model_dump(mode="json", exclude={"batch_size", "suite", "repeat"}),
        trainer=search.trainer,
        image=first.environment.image and first.environment.image.digest,
        gpus=_models(first.host.gpus) if run.device == "cuda" else (),
    ).write(search.path)


class _Trials:
    """The trials of a search, each with a folder and a record."""

    def __init__(self, search: Search, place: Callable[[Run], Place], time_limit: float) -> None:
        self._search, self._place, self._limit = search, place, time_limit
        self._ends = time.monotonic() + TIME_LIMITS * time_limit
        self.full = ""  # why the last batch that did not fit did not
        self.records: list[RunRecord] = []
        self.folders: list[Path] = []
        self._known: dict[int, Tried] = {}

    def attempt(self, batch: int) -> Tried:
        """Try a batch size.

        A framework may crash rather than say that memory is full. A batch that does so twice lacks
        memory if it trains with more; where there is no more, as on a GPU, if a smaller one trains.

        Raises:
            _NotFound: the trial ended in a way that has nothing to do with its size.
        """
        if batch in self._known:
            return self._known[batch]
        run = self._search.run.with_batch(batch)
        record = self._run(run)
        smaller = any(tried.trains and size < batch for size, tried in self._known.items())
        if record.status == "failed" and (smaller or run.memory_limit is not None):
            record = self._run(run)
        self.full = record.reason
        if record.status == "failed" and run.memory_limit is not None:
            self.full += "; " + self._with_more_memory(record)
        elif record.status not in ("ok", "oom") and not (record.status == "failed" and smaller):
            raise self._not_found(record, record.reason)
        trains = record.status == "ok"
        self._known[batch] = Tried(trains, max(record.peak_memory_bytes, default=None))
        return self._known[batch]

    def confirm(self, batch: int) -> bool:
        """Whether a batch size trains each time.

        Raises:
            _NotFound: as `attempt` does.
        """
        if not self.attempt(batch).trains:
            return False
        for _ in range(CONFIRMATIONS):
            del self._known[batch]
            if not self.attempt(batch).trains:
                return False
        return True

    def _with_more_memory(self, crashed: RunRecord) -> str:
        """What shows that a batch crashed for lack of memory.

        Raises:
            _NotFound: nothing does.
        """
        run, log = crashed.run, self.folders[-1] / RUN_LOG
        free = psutil.virtual_memory().available // run.devices_per_node
        limit = min(MORE_MEMORY * run.memory_limit, free)
        said = f"{crashed.reason}; its log ends with: {last_lines(log) or 'nothing'}"
        if limit <= run.memory_limit:
            raise self._not_found(crashed, f"{said}; there is no more memory to try it with")
        more = self._run(run.model_copy(update={"memory_limit": limit}))
        if more.status not in ("ok", "oom"):
            also = f"with {gibibytes(limit)}, too, it does not train: {more.reason}"
            raise self._not_found(crashed, f"{said}; {also}")
        return f"with {gibibytes(limit)} it comes further"

    def _not_found(self, record: RunRecord, reason: str) -> _NotFound:
        if record.status == "timeout" and time.monotonic() > self._ends:
            reason += f"; the search may take {TIME_LIMITS} time limits of {self._limit:g} s"
        tried = f"the trial of {record.run.batch_size} samples per device"
        return _NotFound(record, f"{tried}: {reason}")

    def _run(self, run: Run) -> RunRecord:
        folder = self._search.folder / "trials" / str(len(self.records) + 1)
        folder.mkdir(parents=True)
        stopped, record = try_once(
            run,
            self._place(run),
            folder,
            window=(1, run.iterations),
            time_limit=max(1.0, min(self._limit, self._ends - time.monotonic())),
            attempt=len(self.records) + 1,
        )
        if stopped:
            raise ReperfError(f"{folder}/{RUN_LOG}: {record.status}: {record.reason}")
        self.records.append(record)
        self.folders.append(folder)
        return record


def memory_of(record: RunRecord) -> int | None:
    """The bytes that each device of a run has, or that each process may take; None: not known."""
    if record.run.memory_limit is not None:
        return record.run.memory_limit
    sizes = [gpu.memory_bytes for gpu in record.host.gpus] if record.run.device == "cuda" else []
    return min(sizes, default=None)


def _models(found: tuple) -> tuple[str, ...]:
    """GPUs by their models and memory, in their order."""
    return tuple(f"{gpu.name}, {gpu.memory_bytes} bytes" for gpu in found)


def _told(asked: Run, record: RunRecord, folder: Path) -> BatchTrial:
    more = record.run.memory_limit != asked.memory_limit
    return BatchTrial(
        batch_size=record.run.batch_size,
        status=record.status,
        reason=record.reason,
        peak_memory_bytes=record.peak_memory_bytes,
        memory_limit=record.run.memory_limit if more else None,
        log=str(folder / RUN_LOG),
        log_sha256=record.log_sha256,
    )


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m reperf.training.largest")
    parser.add_argument("--run", required=True, type=Run.model_validate_json)
    parser.add_argument("--trainer", required=True, help="its digest, as planned")
    parser.add_argument("--cluster", required=True, type=json.loads, help="null without one")
    parser.add_argument("--time-limit", required=True, type=float, help="seconds of one trial")
    parser.add_argument("--attempt", required=True, type=int, help="1 for the first")
    parser.add_argument("--retries", required=True, type=int, help="attempts beyond the first")
    parser.add_argument("--log", required=True, type=Path)
    options = parser.parse_args()
    options.log.parent.mkdir(parents=True, exist_ok=True)
    cluster = options.cluster
    with script(options.log, kept=cluster is None):
        find(
            Search(options.run, options.trainer, cluster),
            lambda run: place_of(run, cluster),
            time_limit=options.time_limit,
            last=options.attempt > options.retries,
        )


if __name__ == "__main__":
    main()
