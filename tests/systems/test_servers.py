"""Parameter servers beside trainers: what dies or hangs is named, and nothing outlives a run."""

import json
import shutil
import signal
import socket
from types import SimpleNamespace

import pytest
from reperf.systems import load_systems

from tests.helpers.servers import SHAPE, SYSTEM, follow_pages
from tests.helpers.small_benchmark import SMALL, Benchmark, new_benchmark
from tests.systems.trainer import LIMIT, Trainer, own_steps, small, step_log

HERE = socket.gethostname()


class Served(Trainer):
    """The trainer of a system with servers, which only the library in its folder knows."""

    def train(
        self, time_limit: float = LIMIT, more_flags: tuple[str, ...] = (), **changes: object
    ) -> tuple[SimpleNamespace, str]:
        shutil.rmtree(self.folder / "results", ignore_errors=True)
        asked = {"workload": "softmax", "shape": SHAPE, "servers": {"per_node": 1}} | changes
        library = str(self.folder / "workflow")
        self.train_once(
            json.dumps(small(SYSTEM, **asked)), time_limit, *more_flags, PYTHONPATH=library
        )
        (record,) = self.folder.glob("results/runs/small/*/*/1/run.json")
        log = record.with_name("train.log").read_text()
        return SimpleNamespace(**json.loads(record.read_text())), log


@pytest.fixture(scope="module")
def trainer(tmp_path_factory, environments) -> Served:
    """A benchmark with a system that has servers, in the stand-in's environment."""
    benchmark = new_benchmark(tmp_path_factory.mktemp("servers") / "benchmark", environments)
    follow_pages(benchmark.folder, shares="stand-in")
    return Served(load_systems()["pytorch"], benchmark.folder)


def test_trainers_in_step_end_with_equal_weights_and_those_in_their_own_time_log_each(trainer):
    together, log = trainer.train_well()
    assert [one["rank"] for one in together.servers_heard] == [0]
    assert "--role=server" in together.servers_command
    facts, steps = step_log(log)
    assert len(set(facts["weight_digests"])) == 1
    assert [one["samples"] for one in steps] == [16 * count for count in range(1, 7)]

    _, log = trainer.train_well(variant="async", together=True)
    for rank in (0, 1):
        # Who comes first to the end trains on, and logs it.
        assert [one["samples"] for one in own_steps(log, rank)][:6] == [
            8 * count for count in range(1, 7)
        ]
    assert log.count('"key": "run_stop"') == 2


def test_more_servers_than_cores_are_refused_in_one_line(trainer):
    benchmark = Benchmark(trainer.folder)
    many = {"system": SYSTEM, "servers": {"threads": 1024}}
    suite = SMALL["suites"][0] | {"workload": "softmax", "shape": SHAPE, "input": "synthetic"}
    benchmark.configure(suites=[suite | {"systems": [many]}])
    said = benchmark.snakemake("--configfile", "config.yaml", "--dry-run").stdout
    (line,) = [line for line in said.splitlines() if "reperf: " in line]
    assert "suite small: numpy-servers+servers-1x1024: 1 server a node, 1024 threads each" in line
    assert "need 1024 CPUs; allowed: up to " in line


@pytest.mark.parametrize(
    ("what", "who", "changes", "reason"),
    [
        (signal.SIGKILL, "server 0", {}, "failed: {} ended with SIGKILL, before the trainers"),
        # The other rank may have printed once more.
        (signal.SIGKILL, "rank 1", {}, "failed: {} was ended by SIGKILL; "),
        (signal.SIGSTOP, "server 0", {}, "; server 0 of 1 was last heard of at iteration"),
        (
            signal.SIGSTOP,
            "rank 1",
            {"variant": "async", "together": True},
            f"timeout: no end after {LIMIT} s; rank 1 of 2 was last heard of at iteration",
        ),
    ],
)
def test_what_dies_or_hangs_is_named(trainer, what, who, changes, reason):
    changes = {"iterations": 100_000} | changes
    if what == signal.SIGKILL:
        with trainer.disturbed(what, rank=1, iteration=10, victim=who):
            record, _ = trainer.train(**changes)
    else:
        record, _ = trainer.train_until_one_hangs(1, 10, victim=who, others_say="", **changes)
    assert reason.format(f"{who} on {HERE}") in f"{record.status}: {record.reason}"
