"""What trainers say. The lines go to file descriptor 1, and ends are real process ends."""

import json
import math
import os
import re
import subprocess
import sys

import pytest
from reperf.systems import TRAINERS
from trainers.contract import steplog
from trainers.contract.flags import parse_flags
from trainers.contract.precision import DYNAMIC, Precision, precision_of
from trainers.contract.process import gpus_of_node, keep_to_own_cores, processor
from trainers.recipes import resnet50

FLAGS = (
    "--workload resnet50 --shape image_size=224 --precision fp32 --batch-size 4 --iterations 10 "
    "--print-every 5 --input synthetic --device cpu --threads 1 --seed 1"
)
ENDS = [["all", "aa"]] * 2
"""Of two ranks whose weights are equal."""


def flags_of(more: str = ""):
    return parse_flags(resnet50, [*FLAGS.split(), *more.split()])


def make_log(rank: int = 0, world_size: int = 2, more: str = "") -> steplog.StepLog:
    return steplog.StepLog(resnet50, flags_of(more), rank, world_size)


def configure(log: steplog.StepLog, parameters: int = 25557032) -> None:
    log.configured(parameters, "torch 2", {"torch": "2"}, ["cpu", "cpu"], Precision("float32"))


def events(text: str) -> list[dict]:
    mark = ":::MLLOG "
    lines = [line for line in text.splitlines() if line.startswith(mark)]
    return [json.loads(line.removeprefix(mark)) for line in lines]


def said_of(text: str, key: str) -> list:
    """The values of the events of a key."""
    return [event["value"] for event in events(text) if event["key"] == key]


def python(code: str, **variables: str) -> subprocess.CompletedProcess:
    """Run a program in a process of its own, which finds the trainers' modules."""
    environment = {"PYTHONPATH": str(TRAINERS.parent), **variables}
    how = {"capture_output": True, "text": True, "timeout": 240, "env": environment}
    return subprocess.run([sys.executable, "-c", code], check=False, **how)


def run(body: str) -> subprocess.CompletedProcess:
    """Run the body of `with log.to_the_end():` in a process of its own."""
    return python(f"""
import sys, threading, time
from trainers.contract import steplog
from trainers.contract.flags import parse_flags
from trainers.recipes import resnet50
log = steplog.StepLog(resnet50, parse_flags(resnet50, {FLAGS.split()!r}), rank=1, world_size=2)
with log.to_the_end():
    {body}
print("not reached")
""")


@pytest.mark.parametrize(
    ("usable", "gpus", "flags", "threads"),
    [
        (40, 0, "--threads 3 --devices-per-node 2", 3),
        (40, 0, "--device cuda --devices-per-node 4", 10),
        (40, 0, "--device cuda", 16),
        (40, 0, "--device cuda --devices-per-node 64", 1),
        (40, 0, "--device cuda --loader-threads 20", 20),
        # One GPU of a node has no more than each of all: of 80 cores here, and 8 GPUs.
        (80, 8, "--device cuda", 10),
        (10, 8, "--device cuda", 10),
        (40, 8, "--device cuda --devices-per-node 8", 5),
    ],
)
def test_a_gpus_loader_has_its_share_of_the_cores_but_no_more_than_sixteen(
    usable, gpus, flags, threads, monkeypatch
):
    monkeypatch.setattr("trainers.contract.flags.usable_cores", lambda: usable)
    monkeypatch.setattr("trainers.contract.flags.os.cpu_count", lambda: 80 if gpus else 40)
    monkeypatch.setattr("trainers.contract.flags.gpus_of_node", lambda: gpus)
    assert flags_of(flags).loader_threads == threads


def test_gpus_and_processors_are_those_of_which_the_kernel_says_so(tmp_path):
    assert (gpus_of_node(tmp_path), processor(tmp_path)) == (0, set())
    for address in ("0000:3b:00.0", "0000:af:00.0"):
        (tmp_path / "proc/driver/nvidia/gpus" / address).mkdir(parents=True)
    (tmp_path / "proc/cpuinfo").write_text("vendor_id\t: AuthenticAMD\nflags\t\t: fpu avx avx2\n")
    assert gpus_of_node(tmp_path) == 2
    assert processor(tmp_path) >= {"AuthenticAMD", "fpu", "avx2"}


@pytest.mark.parametrize(
    ("flags", "precision"),
    [
        ("--device cuda", ("float32", "float32", None)),
        ("--device cuda --precision amp", ("float16", "float16", 128.0)),
        ("--device cuda --precision fp16 --dynamic-loss-scale", ("float16", "float16", DYNAMIC)),
        ("--device cuda --precision tf32", ("tf32", "float32", None)),
        ("--device cuda --precision fp8", ("float8", "bfloat16", None)),
        ("--precision amp", ("bfloat16", "bfloat16", None)),
    ],
)
def test_amp_is_float16_with_a_fixed_loss_scale_on_a_gpu_and_bfloat16_on_a_cpu(flags, precision):
    computes = {"cpu": ("bfloat16",), "cuda": ("float16", "bfloat16", "tf32", "float8")}
    found = precision_of(flags_of(flags), computes)
    assert (found.compute, found.dtype, found.loss_scale) == precision


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        ("--precision amp", "--precision amp is not to be had here on a cpu; allowed: fp32"),
        ("--device cuda --precision bf16", "here on a cuda; allowed: fp32, fp16"),
        ("--dynamic-loss-scale", "--dynamic-loss-scale is for float16; this is float32"),
    ],
)
def test_a_precision_that_the_framework_lacks_is_refused(flags: str, said: str):
    with pytest.raises(steplog.Refused, match=said):
        precision_of(flags_of(flags), {"cuda": ("float16",)})


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ("--input tfrecord", "--data is needed unless --input is synthetic"),
        ("--shape image_size=31", "--shape: image_size"),
        ("--image-size 64", "unrecognized arguments: --image-size 64"),
        ("--no-clip", "--no-clip: resnet50 clips no gradients"),
    ],
)
def test_flags_that_cannot_be_are_refused_in_a_line(capsys, more, reason):
    with pytest.raises(SystemExit):
        flags_of(more)
    assert f"error: {reason}" in capsys.readouterr().err.splitlines()[-1]


def test_the_log_names_the_cpus_next_to_a_gpu():
    """A machine without a GPU can only pretend to have found some."""
    names = ["--recipe=resnet50", "--backend=torch.backend", "--model=a.b", "--batches=a.b"]
    code = f"""
from trainers.contract import driver
driver.keep_near_gpu = {{2: "0-3,8"}}.get
driver.backend_of = lambda flags: 1 / 0  # what follows needs a framework
driver.run({[*names, *FLAGS.split(), "--device=cuda"]})
"""
    (said,) = said_of(python(code, LOCAL_RANK="2").stdout, "configuration")
    assert said["cpus"] == "0-3,8"


@pytest.mark.parametrize(
    ("rank", "threads", "cores", "own"),
    [
        (1, 1, "", {2}),
        (1, 2, "", {4, 6}),
        (2, 2, "", {0, 2}),  # there are no more
        (1, 1, "shared", {0, 2, 4, 6}),
    ],
)
def test_ranks_keep_to_cores_of_their_own_unless_they_share_all(
    rank, threads, cores, own, monkeypatch
):
    now = {0, 2, 4, 6}
    monkeypatch.setenv("CORES", cores)
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {*now})
    monkeypatch.setattr(os, "sched_setaffinity", lambda process, few: now.intersection_update(few))
    keep_to_own_cores(rank, threads)
    assert now == own


def test_a_rank_says_that_it_lives_while_it_has_nothing_new_to_say():
    answer = run("""
    import os
    from trainers.contract import waiting
    waiting.LONG = 1
    log.step(5, 6.9, 0.0)
    told, write = [], os.write
    os.write = lambda where, line: told.append(line) or write(where, line)
    while len(told) < 2:
        time.sleep(0.1)
""")
    lines = answer.stdout.splitlines()
    assert lines[1] == "rank 1: iteration 5, loss 6.9", answer.stderr
    first, second = (re.fullmatch(r"rank 1: nothing new for (\d+) s", one)[1] for one in lines[2:])
    # A machine that stands still for seconds leaves some out.
    assert int(first) in {1, 2, 4}
    assert int(second) in {2 * int(first), 4 * int(first)}


def test_a_whole_run_is_a_log_of_one_object_a_line(capfd):
    log = make_log()
    configure(log)
    log.step(5, 6.9, 0.0)
    log.step(10, 6.8, None, tokens=640)  # what else a workload counts, and nobody knows the wait
    log.ranks([(0.123456789, 0.0), (None, 0.25)])
    log.finished(ENDS, [100, 200])
    said = events(capfd.readouterr().out)
    values = {event["key"]: event["value"] for event in said if event["key"] != "tracked_stats"}
    expected = {"global_batch_size": 8, "world_size": 2, "parameters": 25557032}
    expected |= {"rank_seconds_alone": [0.123457, None], "rank_seconds_waited": [0.0, 0.25]}
    assert values.items() >= expected.items()
    flags = {"shape": {"image_size": 224}, "pipeline": []}
    assert values["configuration"].items() >= flags.items()
    first, second = (event["value"] for event in said if event["key"] == "tracked_stats")
    # The time before the first line holds the start, too.
    assert first.pop("seconds") + 40 / second.pop("throughput") == pytest.approx(second["seconds"])
    assert first == {"iteration": 5, "samples": 40, "loss": 6.9, "waited": 0.0}
    del second["seconds"]
    assert second == {"iteration": 10, "samples": 80, "loss": 6.8, "tokens": 640}
    assert "weight_changes" not in values
    assert (said[-1]["key"], said[-1]["metadata"]["status"]) == ("run_stop", "success")


def test_other_ranks_only_give_their_losses_as_signs_of_life(capfd):
    log = make_log(rank=1)
    configure(log)
    log.without_dropout(7.25)
    log.step(5, 6.9, 0.0)
    log.step(10, None, 0.25)
    log.ranks([(0.1, 0.25), (0.2, 0.0)])
    log.finished(ENDS, [100, 200])
    first, *lines = capfd.readouterr().out.splitlines()
    assert first.startswith("rank 1: started on ")
    said = ["iteration 5, loss 6.9", "iteration 10, waited 0.250000 s", "done"]
    assert lines == [f"rank 1: {one}" for one in said]


@pytest.mark.parametrize(
    ("more", "printed", "first"),
    [
        ("", [1, 5, 10], [7.5]),
        ("--print-every 1", [*range(1, 11)], [7.5]),
        # Frameworks crop and flip what is read at random, each in its own way.
        ("--input tfrecord --data d", [5, 10], []),
        ("--proof", [5, 10], []),
    ],
)
def test_the_first_loss_is_said_where_all_have_one_batch(more, printed, first, capfd):
    log = make_log(more=more)
    assert [one for one in range(1, 11) if log.prints(one)] == printed
    for iteration in printed:
        log.step(iteration, 8.5 - iteration / 2 - 0.5, 0.0)
    said = capfd.readouterr().out
    assert said_of(said, "loss_without_dropout") == first
    # The first iteration is no step of the log unless it is to be printed anyway.
    asked = [*range(1, 11)] if "every" in more else [5, 10]
    assert [value["iteration"] for value in said_of(said, "tracked_stats")] == asked


def test_changes_of_weights_are_told_in_one_short_line(capfd):
    make_log().finished(ENDS, [1, 1], [math.pi * 1e-5] * 161)
    (line,) = [line for line in capfd.readouterr().out.splitlines() if "weight_changes" in line]
    assert len(line) < 4096
    assert events(line)[0]["value"] == [3.14159e-05] * 161


STAGES = "--pipeline 2 1"


def end(*ends: str, more: str = STAGES) -> None:
    """End a run of ranks, each of which has a part of the model and a digest: "0 aa"."""
    log = make_log(world_size=len(ends), more=more)
    log.finished([one.split() for one in ends], [1] * len(ends))


REFUSED = {
    "has 25575912 parameters, resnet50 has 25557032": lambda: configure(make_log(), 25575912),
    "the loss at iteration 5 is nan": lambda: make_log().step(5, math.nan, 0.0),
    "the loss at iteration 5 is inf": lambda: make_log(rank=1).step(5, math.inf, 0.0),
    "the first loss, without dropout, is inf": lambda: make_log(rank=1).without_dropout(math.inf),
    "weights of rank 1 differ from rank 0's": lambda: end("all aa", "all bb", more=""),
    r"of rank 1 \(stage 0\) differ from rank 0 \(stage 0\)'s": lambda: end("0 a", "0 b", "1 b"),
}


@pytest.mark.parametrize("why", REFUSED)
def test_what_would_not_measure_the_workload_is_refused(why):
    with pytest.raises(steplog.Refused, match=why):
        REFUSED[why]()


def test_a_batch_is_of_the_first_stage_and_replicas_of_each_stage_are_equal(capfd):
    log = make_log(world_size=3, more=STAGES)
    assert (log.global_batch, log.who) == (8, "rank 0 (stage 0)")
    end("0 aa", "0 aa", "1 bb")
    assert events(capfd.readouterr().out)[-1]["key"] == "run_stop"
    with pytest.raises(ValueError, match="2 ranks for"):
        make_log(world_size=2, more=STAGES)


RUNS_ON = "threading.Thread(target=time.sleep, args=(60,)).start(); print('last words')"


@pytest.mark.parametrize(
    ("body", "status", "last", "complaint"),
    [
        (RUNS_ON, 0, "last words", ""),  # it leaves at once, whatever still runs
        ("raise steplog.Refused('no images')", 1, ":::REFUSED rank 1: no images", ""),
        ("print('last words'); 1 / 0", 1, "last words", "ZeroDivisionError: division by zero"),
    ],
    ids=["well", "refused", "another error"],
)
def test_a_process_ends_with_its_run_and_says_why_if_it_failed(body, status, last, complaint):
    answer = run(body)
    assert answer.returncode == status
    assert answer.stdout.splitlines()[-1] == last
    assert answer.stderr.strip().rpartition("\n")[2] == complaint


@pytest.mark.parametrize(
    "error",
    [
        "[enforce] DefaultCPUAllocator: can't allocate memory: 9 bytes",
        "DefaultCPUAllocator: not enough memory: you tried to allocate 9 bytes",
        "CUDA out of memory. Tried to allocate 20.00 MiB",
        "OOM when allocating tensor with shape[256,64,112,112]",
        "Failed to allocate 12 bytes",
        "std::bad_alloc",
        "cuDNN error: CUDNN_STATUS_ALLOC_FAILED",
        "No algorithm worked!",
        "GET was unable to find an engine to execute this computation",
    ],
)
def test_full_memory_has_a_mark_of_its_own_in_every_framework(error, monkeypatch, capfd):
    ended = []
    monkeypatch.setattr(os, "_exit", ended.append)
    with make_log(rank=1).to_the_end():
        # MXNet's messages begin with a traceback: the line on memory is said.
        raise RuntimeError(f"Traceback:\n File x\n{error}\n at 0")
    with make_log(rank=1).to_the_end():
        raise MemoryError
    assert ended == [1, 1]
    marked = [line for line in capfd.readouterr().out.splitlines() if line.startswith(":::")]
    assert marked == [f":::OOM rank 1: {error}", ":::OOM rank 1: no memory left"]
