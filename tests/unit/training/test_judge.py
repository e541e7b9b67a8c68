"""How a run ended, by what its launcher left behind."""

import json
from pathlib import Path
from zipfile import ZipFile

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reperf.config import Container, Parallel, Run, load_report
from reperf.config.servers import Servers
from reperf.logs.formats import mllog
from reperf.machine import describe_host
from reperf.systems import load_workloads
from reperf.training.launch import Outcome
from reperf.training.record import Environment, LastHeard, RunRecord
from reperf.training.train import (
    computed_in,
    judge,
    loader_threads,
    peak_memory,
    peak_memory_is,
    settings,
)

from tests.helpers.small_benchmark import SMALL

RUN = load_report(SMALL).run("small", "pytorch", "1n2g", 1)
HEARD = tuple(LastHeard(rank=rank, iteration=3, seconds=2.0) for rank in (0, 1))


OTHERS_ENDED = """Killing subprocess 7
Traceback (most recent call last):
    sigkill_handler(signal.SIGTERM, None)
subprocess.CalledProcessError: Command 'python' returned non-zero exit status 1.
"""
"""What OneFlow's launcher says when a rank has failed."""
MUCH = 20_000 * "E " + "SIGTERM"
RECORD = RunRecord(
    status="ok",
    run=RUN,
    attempt=1,
    command=(),
    variables={},
    environment=Environment(lock="", lock_sha256="", python="", packages={}),
    git_commit=None,
    git_dirty=None,
    host=describe_host(),
    started="",
    ended="",
    seconds=1,
    exit_code=0,
    log_sha256="",
)
ODD_VALUES = [
    *(None, True, -1, 1.5, "25557032", "\ud800", [], {}, [[1]], [1, "2"], {"a": {}}, 10**400),
    *({"a": "\ud800", "\n": "0"}, {"a": 10**400}, {"a": True, "b": 4, "c": "0", "d": 1.5}),
    *([1, 2], [1.0, 2.0], [1, 2, 3], float("nan"), [float("inf")], "x" * 100_000),
]


def judged(folder: Path, log: str, run: Run = RUN, **ended: object) -> tuple[str, str]:
    """The status and the reason of a run that left this log and ended so."""
    path = folder / "train.log"
    path.write_text(log)
    outcome = Outcome(**{"last_heard": HEARD} | ended)
    return judge(run, outcome, path, facts={}, time_limit=60)


def test_an_engine_that_does_not_start_a_container_has_the_last_word(tmp_path: Path):
    container = Container(engine="podman", image="torch")
    said = "srun: launching\nOCI runtime error: no such device\nsrun: error: node1: exit code 126\n"
    status, why = judged(
        tmp_path,
        said,
        RUN.model_copy(update={"container": container}),
        exit_code=126,
        last_heard=(),
    )
    assert status == "failed"
    assert why.startswith("the last line from podman is: OCI runtime error: no such device; rank 0")


@pytest.mark.parametrize(
    ("exit_code", "log", "status", "reason"),
    [
        (1, "Signal 9 (SIGKILL) received\n[rank 0] SIGTERM", "failed", "ended by SIGKILL"),
        (1, "exit code -9", "failed", "ended by SIGKILL"),
        (1, f"1: rank 1 on n2 ended with SIGKILL\n{MUCH}", "failed", "rank 1 on n2 was ended"),
        (-11, "", "failed", "ended by SIGSEGV"),
        # As container engines, shells and srun report signals.
        (128 + 11, "", "failed", "ended by SIGSEGV"),
        (128 + 9, "", "failed", "ended by SIGKILL"),
        (255, "", "failed", "no error was printed"),
        (1, "what():  std::bad_alloc\nended with SIGABRT", "oom", "ran out of memory"),
        (1, "Traceback ..\nMemoryError\nended with SIGTERM", "oom", "ran out of memory"),
        (1, "numpy._core._exceptions._ArrayMemoryError: Unable\nSIGTERM", "oom", "ran out of mem"),
        (1, f"KeyError: 'a'\n{OTHERS_ENDED}", "failed", "KeyError: 'a'; "),
        (
            1,
            f"rank 0 on n1 ended with SIGSEGV\n{OTHERS_ENDED}",
            "failed",
            "n1 was ended by SIGSEGV",
        ),
        (1, f"KeyError: 'a'\nrank 0 on n1 ended with status 1\n{OTHERS_ENDED}", "failed", "KeyErr"),
        (
            1,
            f"MemoryError\nrank 0 on n1 ended with status 1\n{OTHERS_ENDED}",
            "oom",
            "rank 0 on n1 ran",
        ),
        (1, OTHERS_ENDED, "failed", "a process was ended by SIGTERM"),
        (137, "srun: error: n1: task 0: Out Of Memory", "oom", "ran out of memory"),
        (1, "slurmstepd: error: Detected 1 oom_kill event in StepId=7.0.", "oom", "ran out of m"),
        (1, "what():  CUDA error: out of memory\nended with SIGABRT", "oom", "ran out of memory"),
        (1, "F1 cuda.cpp] Check failed: status out of memory\nSIGABRT", "oom", "ran out of memory"),
        (1, "cudnn error: CUDNN_STATUS_ALLOC_FAILED\nSIGABRT", "oom", "ran out of memory"),
        (-11, "W Allocator (GPU_0_bfc) ran out of memory trying", "failed", "ended by SIGSEGV"),
        (1, "ImportError: lib.so: failed to map segment from shared object", "failed", "ImportErr"),
        (1, "instance of 'gloo::TimeoutException'\nSIGABRT", "timeout", "rank gave up waiting for"),
        (1, "gloo::TimeoutException\nexit code -9", "failed", "ended by SIGKILL"),
        (1, "unhealthy (stopped sending heartbeats)", "timeout", "rank gave up waiting for"),
        (1, "Status: DEADLINE_EXCEEDED: Deadline\nSIGABRT", "timeout", "rank gave up waiting for"),
        (3, "", "failed", "no error was printed"),
        (0, "", "failed", "the trainer reported no number of parameters"),
    ],
)
def test_what_a_launcher_leaves_is_named(tmp_path: Path, exit_code, log, status, reason):
    ended, why = judged(tmp_path, log, exit_code=exit_code)
    assert ended == status
    assert reason in why


PIPELINE = RUN.model_copy(update={"topology": "1n3g", "parallel": Parallel(pipeline=(2, 1))})
WAITS = """rank 2 (stage 1): waits for rank 0 (stage 0)
:::MLLOG {"key": "tracked_stats"}
rank 2 (stage 1): iteration 3
"""


@pytest.mark.parametrize(
    ("log", "who"),
    [
        (
            f"{WAITS}rank 0 (stage 0): waits for rank 2 (stage 1)\n",
            "rank 2 (stage 1) is waited for;",
        ),
        (
            f"{WAITS}rank 0 (stage 0): waits for the other replicas of stage 0\n"
            "rank 2 (stage 1): waits for rank 1 (stage 0)\n",
            "rank 1 (stage 0) is waited for;",
        ),
        (
            "rank 0 (stage 0): waits for rank 1 (stage 0) or rank 2 (stage 1)\n"
            "rank 1 (stage 0): waits for rank 0 (stage 0)\n",
            "rank 2 (stage 1) is waited for;",
        ),
        (WAITS, "all 3 ranks were last heard of"),
    ],
)
def test_of_stages_that_stand_still_the_one_is_named_for_which_others_wait(tmp_path, log, who):
    heard = tuple(LastHeard(rank=rank, iteration=3, seconds=2.0) for rank in range(3))
    status, why = judged(tmp_path, log, PIPELINE, timed_out=True, last_heard=heard)
    assert status == "timeout"
    assert why.startswith(f"no end after 60 s; {who} ")


def test_a_stage_that_a_signal_ended_is_named(tmp_path: Path):
    table = "  rank      : {} (local_rank: 1)\n  exitcode  : {} (pid: 7)\n  traceback : Signal {}\n"
    log = table.format(0, 1, "") + table.format(1, -15, "SIGTERM") + table.format(2, -9, "SIGKILL")
    assert (
        "rank 2 (stage 1) was ended by SIGKILL" in judged(tmp_path, log, PIPELINE, exit_code=1)[1]
    )
    assert "rank 2 was ended by SIGKILL" in judged(tmp_path, log, exit_code=1)[1]
    ours = "rank 1 on n2 ended with SIGKILL\n"
    assert (
        "rank 1 (stage 0) on n2 was ended by SIGKILL"
        in judged(tmp_path, ours, PIPELINE, exit_code=1)[1]
    )
    unheard = judged(tmp_path, "", PIPELINE, exit_code=1)[1]
    assert "rank 2 (stage 1) of 3 was never heard of" in unheard


def test_a_full_gpu_is_out_of_memory_in_its_own_words(tmp_path: Path):
    """What PyTorch printed on an H100."""
    logs = Path(__file__).parents[2] / "data" / "logs" / "h100.zip"
    text = ZipFile(logs).read("pytorch-resnet50-fp16-b8192-oom.log").decode()
    status, why = judged(tmp_path, text, exit_code=1)
    assert status == "oom"
    assert "Tried to allocate 12.25 GiB. GPU 0 has a total capacity of 79.18 GiB" in why


@pytest.mark.parametrize(("exit_code", "ended"), [(0, "ok"), (1, "oom")])
def test_a_run_that_ended_well_did_not_run_out_of_memory(tmp_path: Path, exit_code, ended):
    """Whatever its log quotes: trainers of ours end with another code where memory was full."""
    log = tmp_path / "train.log"
    log.write_text("rank 0: done\n:::OOM rank 1: no memory left\n")
    parameters = load_workloads()[RUN.workload].parameters_of(RUN.shape)
    facts = {"parameters": parameters, "run_stop": None}
    outcome = Outcome(exit_code=exit_code, last_heard=HEARD, done=frozenset({0, 1}))
    assert judge(RUN, outcome, log, facts, time_limit=60)[0] == ended


def test_a_trainer_that_dies_while_its_peers_end_with_0_fails_the_run(tmp_path: Path):
    parameters = load_workloads()[RUN.workload].parameters_of(RUN.shape)
    facts = {"parameters": parameters, "run_stop": None}
    (tmp_path / "train.log").write_text("")
    outcome = Outcome(exit_code=0, last_heard=HEARD, done=frozenset({0}))
    status, why = judge(RUN, outcome, tmp_path / "train.log", facts, time_limit=60)
    assert status == "failed"
    assert why.startswith("rank 1 of 2 ended without saying that it was done; all 2 ranks were")


SERVERS_HEARD = (
    LastHeard(rank=0, iteration=40, seconds=9),
    LastHeard(rank=1, iteration=20, seconds=4),
)


@pytest.mark.parametrize(
    ("heard", "ended", "log", "reason"),
    [
        (
            SERVERS_HEARD,
            {"servers_ended": 1, "exit_code": 1},
            "server 1 on node2 ended with SIGKILL\nConnectionResetError",
            "failed: server 1 on node2 ended with SIGKILL, before the trainers; all 2 ranks",
        ),
        (
            SERVERS_HEARD,
            {"servers_ended": 137, "out_of_memory_kills": 1},
            "3: server 3 on node4 ended with SIGKILL\n",
            "oom: server 3 on node4 ended with SIGKILL because the machine's memory was full",
        ),
        (
            SERVERS_HEARD[:1],
            {"servers_ended": 1},
            "srun: error: Node failure on node2\n",
            "failed: the servers ended with status 1, before the trainers;",
        ),
        (
            SERVERS_HEARD,
            {"timed_out": True},
            "",
            "3, 2 s in; server 1 of 2 was last heard of at iteration 20, 4 s in",
        ),
        ((), {"timed_out": True}, "", "2 s in; server 0 of 2 was never heard of"),
    ],
)
def test_servers_that_end_or_hang_are_named(tmp_path: Path, heard, ended, log, reason):
    run = RUN.model_copy(update={"servers": Servers(per_node=2)})
    assert reason in ": ".join(judged(tmp_path, log, run, servers_heard=heard, **ended))


def test_libraries_that_do_not_fit_below_a_limit_are_out_of_memory(tmp_path: Path):
    log = "ImportError: lib.so: failed to map segment from shared object\nKilling subprocess 3"
    limited = RUN.model_copy(update={"memory_limit": 10**9})
    status, why = judged(tmp_path, log, limited, exit_code=1)
    assert (status, why.startswith("a process ran out of memory")) == ("oom", True)


def test_killed_while_the_kernel_wanted_memory_is_out_of_memory(tmp_path: Path):
    status, reason = judged(tmp_path, "exit code -9", exit_code=1, out_of_memory_kills=1)
    assert (status, reason) == ("oom", "a process was killed because the machine's memory was full")
    status, _ = judged(tmp_path, "ValueError: no such layer", exit_code=1, out_of_memory_kills=1)
    assert status == "failed"


def test_a_lost_rank_is_the_one_that_is_behind(tmp_path: Path):
    behind = (HEARD[0], LastHeard(rank=1, iteration=2, seconds=1.0))
    said = "no end after 60 s; rank 1 of 2 was last heard of at iteration 2, 1 s in"
    assert judged(tmp_path, "", timed_out=True, last_heard=behind) == ("timeout", said)


def test_of_ranks_that_stand_still_the_one_is_named_that_no_longer_says_that_it_lives(
    tmp_path: Path,
):
    said = "no end after 60 s; rank 1 of 2 was last heard of at iteration 3, 2 s in"
    assert judged(tmp_path, "", timed_out=True, silent={1}) == ("timeout", said)


def test_of_a_trainers_settings_those_that_can_be_such_are_recorded():
    said = {"a": True, "b": 4, "c": "0", "d": 1.5, "e": "\ud800", "f\n": "0", "g": 10**900, "h": {}}
    assert settings({"settings": said}) == {"a": True, "b": 4, "c": "0"}
    assert settings({"settings": [1]}) == settings({}) == {}


@given(
    st.lists(
        st.tuples(
            st.sampled_from(
                [
                    "parameters",
                    "peak_memory_bytes",
                    "peak_memory_is",
                    "run_stop",
                    "configuration",
                    "precision",
                    "settings",
                    ["no", "text"],
                    {},
                ]
            ),
            st.sampled_from(ODD_VALUES),
        )
    ),
    st.sampled_from(
        [":::REFUSED rank 1: \x1b" + "x" * 5000, ":::OOM rank 1: ", "SIG" * 9000, "E" * 9000, ""]
    ),
    st.sampled_from([0, 1, -9, -40]),
)
def test_whatever_the_log_says_its_record_can_be_written_and_read(
    tmp_path_factory, events, text, code
):
    log = tmp_path_factory.mktemp("run") / "train.log"
    lines = [":::MLLOG " + json.dumps({"key": key, "value": value}) for key, value in events]
    log.write_text(
        "\n".join([*lines, ":::MLLOG {" * 50_000, text, "Error: \x1b[31m" + "\udce4" * 9]),
        errors="surrogateescape",
    )
    facts = mllog.read_facts(log)
    outcome = Outcome(exit_code=code, last_heard=HEARD)
    status, reason = judge(RUN, outcome, log, facts, time_limit=60)
    assert len(reason) <= 500
    assert "\n" not in reason
    ended = {
        "status": status,
        "reason": reason,
        "peak_memory_bytes": peak_memory(RUN, facts),
        "peak_memory_is": peak_memory_is(facts),
        "computed_in": computed_in(facts),
        "loader_threads": loader_threads(facts),
        "settings": settings(facts),
    }
    record = RECORD.model_copy(update=ended)
    record.write(log.with_name("run.json"))
    assert RunRecord.read(log.with_name("run.json")) == record
