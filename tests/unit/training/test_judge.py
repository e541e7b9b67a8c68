"""How a run ended, by what its launcher left behind."""

import json
from pathlib import Path
from zipfile import ZipFile

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reperf.config import Container, Parallel, Run
from reperf.config.parallelism import Servers
from reperf.logs.formats import mllog
from reperf.records.run_record import LastHeard, RunRecord
from reperf.systems.workloads import load_workloads
from reperf.training.launch import Outcome
from reperf.training.train import judge, reported_in, settings

from tests.helpers.run_records import record_of, small_run

RUN = small_run("1n2g")
IN_PODMAN = small_run("1n2g", container=Container(engine="podman", image="torch"))
LIMITED = small_run("1n2g", memory_limit=10**9)
SERVED = small_run("1n2g", servers=Servers(per_node=2))
STAGES = small_run("1n3g", parallel=Parallel(pipeline=(2, 1)))


def heard(*iterations: int, seconds: tuple[float, ...] = (2.0, 2.0, 2.0)) -> dict[int, LastHeard]:
    """When each rank or server was last heard of, and where it was."""
    ranks = enumerate(zip(iterations, seconds, strict=False))
    return {rank: LastHeard(rank=rank, iteration=it, seconds=at) for rank, (it, at) in ranks}


def judged(folder: Path, log: str, run: Run = RUN, **ended: object) -> str:
    """The status and the reason of a run that left this log and ended so."""
    path = folder / "train.log"
    path.write_text(log)
    facts = ended.pop("facts", {})
    outcome = Outcome(**{"last_heard": heard(3, 3)} | ended)
    return ": ".join(judge(run, outcome, path, facts, time_limit=60))


OTHERS_ENDED = """Killing subprocess 7
Traceback (most recent call last):
    sigkill_handler(signal.SIGTERM, None)
subprocess.CalledProcessError: Command 'python' returned non-zero exit status 1.
"""
"""What OneFlow's launcher says when a rank has failed."""
STATUS_1 = f"rank 0 on n1 ended with status 1\n{OTHERS_ENDED}"
SEGV = f"rank 0 on n1 ended with SIGSEGV\n{OTHERS_ENDED}"
RANK_1 = "rank 1 on n2 ended with SIGKILL\n"
MUCH = 20_000 * "E " + "SIGTERM"
FULL = "oom: a process ran out of memory and died; "
GAVE_UP = "timeout: a rank gave up waiting for another; "
KILLED = "failed: a process was ended by SIGKILL; "
CRASHED = "failed: a process was ended by SIGSEGV; "
UNSAID = "failed: no error was printed; "
PODMAN = "failed: the last line from podman is: OCI runtime error: "


@pytest.mark.parametrize(
    ("exit_code", "log", "said"),
    [
        (1, "Signal 9 (SIGKILL) received\n[rank 0] SIGTERM", KILLED),
        (1, "exit code -9", KILLED),
        (1, f"1: {RANK_1}{MUCH}", "failed: rank 1 on n2 was ended by SIGKILL"),
        (-11, "", CRASHED),
        # As container engines, shells and srun report signals.
        (128 + 11, "", CRASHED),
        (128 + 9, "", KILLED),
        (255, "", UNSAID),
        (1, "what():  std::bad_alloc\nended with SIGABRT", FULL),
        (1, "Traceback ..\nMemoryError\nended with SIGTERM", FULL),
        (1, "numpy._core._exceptions._ArrayMemoryError: Unable\nSIGTERM", FULL),
        (1, f"KeyError: 'a'\n{OTHERS_ENDED}", "failed: KeyError: 'a'; "),
        (1, f"KeyError: 'a'\n{STATUS_1}", "failed: KeyError: 'a'; "),
        (1, SEGV, "failed: rank 0 on n1 was ended by SIGSEGV; "),
        (1, f"MemoryError\n{STATUS_1}", "oom: rank 0 on n1 ran out of memory and died; "),
        (1, OTHERS_ENDED, "failed: a process was ended by SIGTERM; "),
        (137, "srun: error: n1: task 0: Out Of Memory", FULL),
        (1, "slurmstepd: error: Detected 1 oom_kill event in StepId=7.0.", FULL),
        (1, "what():  CUDA error: out of memory\nended with SIGABRT", FULL),
        (1, "F1 cuda.cpp] Check failed: status out of memory\nSIGABRT", FULL),
        (1, "cudnn error: CUDNN_STATUS_ALLOC_FAILED\nSIGABRT", FULL),
        (-11, "W Allocator (GPU_0_bfc) ran out of memory trying", CRASHED),
        (1, "ImportError: lib.so: failed to map segment from shared object", "failed: ImportErr"),
        (1, "instance of 'gloo::TimeoutException'\nSIGABRT", GAVE_UP),
        (1, "gloo::TimeoutException\nexit code -9", KILLED),
        (1, "unhealthy (stopped sending heartbeats)", GAVE_UP),
        (1, "Status: DEADLINE_EXCEEDED: Deadline\nSIGABRT", GAVE_UP),
        (3, "", UNSAID),
        (0, "", "failed: the trainer reported no number of parameters; "),
    ],
)
def test_what_a_launcher_leaves_is_named(tmp_path: Path, exit_code, log, said):
    assert judged(tmp_path, log, exit_code=exit_code).startswith(said)


TORCHRUN = "  rank      : {} (local_rank: 1)\n  exitcode  : {} (pid: 7)\n  traceback : Signal {}\n"
SIGNALS = [(0, 1, ""), (1, -15, "SIGTERM"), (2, -9, "SIGKILL")]
KILLS = "".join(TORCHRUN.format(*rank) for rank in SIGNALS)
ENGINE = "srun: launching\nOCI runtime error: no such device\nsrun: error: n1: exit code 126\n"
NO_PLACE = "ImportError: lib.so: failed to map segment from shared object\nKilling subprocess 3"
WAITS = """rank 2 (stage 1): waits for rank 0 (stage 0)
:::MLLOG {"key": "tracked_stats"}
rank 2 (stage 1): iteration 3
"""
FOR_2 = f"{WAITS}rank 0 (stage 0): waits for rank 2 (stage 1)\n"
FOR_1 = f"""{WAITS}rank 0 (stage 0): waits for the other replicas of stage 0
rank 2 (stage 1): waits for rank 1 (stage 0)
"""
FOR_1_OR_2 = """rank 0 (stage 0): waits for rank 1 (stage 0) or rank 2 (stage 1)
rank 1 (stage 0): waits for rank 0 (stage 0)
"""
SERVER_1 = "server 1 on node2 ended with SIGKILL\nConnectionResetError"
SERVER_3 = "3: server 3 on node4 ended with SIGKILL\n"
NODE = "srun: error: Node failure on node2\n"

EXIT_1 = {"exit_code": 1}
UNHEARD = {"exit_code": 126, "last_heard": {}}
KILLED_FOR_MEMORY = {"exit_code": 1, "out_of_memory_kills": 1}
NO_END = {"timed_out": True}
BEHIND = NO_END | {"last_heard": heard(3, 2, seconds=(2.0, 1.0))}
SILENT = NO_END | {"silent": {1}}
ALL_3 = NO_END | {"last_heard": heard(3, 3, 3)}
SERVER_FIRST = {"servers_ended": 1}
BOTH_END = SERVER_FIRST | EXIT_1
SERVER_KILLED = {"servers_ended": 137, "out_of_memory_kills": 1}
SERVERS_HANG = NO_END | {"servers_heard": heard(40, 20, seconds=(9, 4))}
LATE = "timeout: no end after 60 s; "
BOTH = f"{LATE}all 2 ranks were last heard of at iteration 3, 2 s in; "
FULL_MACHINE = "because the machine's memory was full"


@pytest.mark.parametrize(
    ("run", "ended", "log", "said"),
    [
        (IN_PODMAN, UNHEARD, ENGINE, f"{PODMAN}no such device; rank 0"),
        (LIMITED, EXIT_1, NO_PLACE, FULL),
        (RUN, KILLED_FOR_MEMORY, "exit code -9", f"oom: a process was killed {FULL_MACHINE}"),
        (RUN, KILLED_FOR_MEMORY, "ValueError: a", "failed: ValueError: a"),
        # The rank that is behind, or that no longer says that it lives.
        (RUN, BEHIND, "", f"{LATE}rank 1 of 2 was last heard of at iteration 2, 1 s in"),
        (RUN, SILENT, "", f"{LATE}rank 1 of 2 was last heard of at iteration 3, 2 s in"),
        # The stage that a signal ended, or for which others wait.
        (STAGES, EXIT_1, KILLS, "failed: rank 2 (stage 1) was ended by SIGKILL"),
        (RUN, EXIT_1, KILLS, "failed: rank 2 was ended by SIGKILL"),
        (STAGES, EXIT_1, RANK_1, "failed: rank 1 (stage 0) on n2 was ended by SIGKILL"),
        (STAGES, EXIT_1, "", f"{UNSAID}rank 2 (stage 1) of 3 was never heard of"),
        (STAGES, NO_END, FOR_2, f"{LATE}rank 2 (stage 1) is waited for; "),
        (STAGES, NO_END, FOR_1, f"{LATE}rank 1 (stage 0) is waited for; "),
        (STAGES, NO_END, FOR_1_OR_2, f"{LATE}rank 2 (stage 1) is waited for; "),
        (STAGES, ALL_3, WAITS, f"{LATE}all 3 ranks were last heard of"),
        # Servers that end or hang.
        (SERVED, BOTH_END, SERVER_1, "failed: server 1 on node2 ended with SIGKILL, before the "),
        (
            SERVED,
            SERVER_KILLED,
            SERVER_3,
            f"oom: server 3 on node4 ended with SIGKILL {FULL_MACHINE}",
        ),
        (SERVED, SERVER_FIRST, NODE, "failed: the servers ended with status 1, before the train"),
        (
            SERVED,
            SERVERS_HANG,
            "",
            f"{BOTH}server 1 of 2 was last heard of at iteration 20, 4 s in",
        ),
        (SERVED, NO_END, "", f"{BOTH}server 0 of 2 was never heard of"),
    ],
)
def test_who_ended_or_hung_is_named(tmp_path: Path, run, ended, log, said):
    assert judged(tmp_path, log, run, **ended).startswith(said)


def test_a_full_gpu_is_out_of_memory_in_its_own_words(tmp_path: Path):
    """What PyTorch printed on an H100."""
    logs = ZipFile(Path(__file__).parents[3] / "data/measured/h100.zip")
    log = logs.read("pytorch-resnet50-fp16-b8192-oom.log").decode()
    said = judged(tmp_path, log, exit_code=1)
    assert said.startswith("oom: ")
    assert "Tried to allocate 12.25 GiB. GPU 0 has a total capacity of 79.18 GiB" in said


UNDONE = "failed: rank 1 of 2 ended without saying that it was done; "
WHOLE = {"parameters": load_workloads()["resnet50"].parameters_of(RUN.shape), "run_stop": None}


@pytest.mark.parametrize(
    ("exit_code", "done", "said"),
    [
        # Whatever its log quotes: trainers of ours end with another code where memory was full.
        (0, {0, 1}, "ok: "),
        (1, {0, 1}, "oom: rank 1: no memory left"),
        (0, {0}, f"{UNDONE}all 2 ranks were last heard of at iteration 3, 2 s in"),
    ],
)
def test_a_run_is_good_if_all_of_it_ended_well(tmp_path: Path, exit_code, done, said):
    log = "rank 0: done\n:::OOM rank 1: no memory left\n"
    ended = judged(tmp_path, log, exit_code=exit_code, done=frozenset(done), facts=WHOLE)
    assert ended == said


def test_of_a_trainers_settings_those_that_can_be_such_are_recorded():
    said = {"a": True, "b": 4, "c": "0", "d": 1.5, "e": "\ud800", "f\n": "0", "g": 10**900, "h": {}}
    assert settings({"settings": said}) == {"a": True, "b": 4, "c": "0"}
    assert settings({"settings": [1]}) == settings({}) == {}


RECORDED = "parameters peak_memory_bytes peak_memory_is run_stop configuration precision settings"
ODD_VALUES = [
    *(None, True, -1, 1.5, "25557032", "\ud800", [], {}, [[1]], [1, "2"], {"a": {}}, 10**400),
    *({"a": "\ud800", "\n": "0"}, {"a": 10**400}, {"a": True, "b": 4, "c": "0", "d": 1.5}),
    *([1, 2], [1.0, 2.0], [1, 2, 3], float("nan"), [float("inf")], "x" * 100_000),
]
ODD_ENDS = [":::REFUSED rank 1: \x1b" + "x" * 5000, ":::OOM rank 1: ", "SIG" * 9000, "E" * 9000, ""]


@given(
    st.lists(
        st.tuples(
            st.sampled_from([*RECORDED.split(), ["no", "text"], {}]), st.sampled_from(ODD_VALUES)
        )
    ),
    st.sampled_from(ODD_ENDS),
    st.sampled_from([0, 1, -9, -40]),
)
def test_whatever_the_log_says_its_record_can_be_written_and_read(
    tmp_path_factory, events, text, code
):
    log = tmp_path_factory.getbasetemp() / "train.log"
    lines = [":::MLLOG " + json.dumps({"key": key, "value": value}) for key, value in events]
    log.write_text(
        "\n".join([*lines, ":::MLLOG {" * 30_000, text, "Error: \x1b[31m" + "\udce4" * 9]),
        errors="surrogateescape",
    )
    facts = mllog.read_facts(log)
    outcome = Outcome(exit_code=code, last_heard=heard(3, 3))
    status, reason = judge(RUN, outcome, log, facts, time_limit=60)
    assert len(reason) <= 500
    assert "\n" not in reason
    record = record_of(RUN, status=status, reason=reason, **reported_in(RUN, facts))
    record.write(log.with_name("run.json"))
    assert RunRecord.read(log.with_name("run.json")) == record
