"""What trainers say. The lines go to file descriptor 1, and ends are real process ends."""

import json
import math
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from reperf.systems.system import TRAINERS
from trainers.contract import steplog
from trainers.contract.flags import parse_flags
from trainers.contract.precision import DYNAMIC, Precision, precision_of
from trainers.contract.process import gpus_of_node, is_amd_with_avx2
from trainers.recipes import resnet50

FLAGS = [
    "--workload",
    "resnet50",
    "--shape",
    "image_size=224",
    "--precision",
    "fp32",
    "--batch-size",
    "4",
    "--iterations",
    "10",
    "--print-every",
    "5",
    "--input",
    "synthetic",
    "--device",
    "cpu",
    "--threads",
    "1",
    "--seed",
    "1",
]


def make_log(rank: int = 0, world_size: int = 2, more: tuple[str, ...] = ()) -> steplog.StepLog:
    return steplog.StepLog(resnet50, parse_flags(resnet50, [*FLAGS, *more]), rank, world_size)


@pytest.mark.parametrize(
    ("flags", "threads"),
    [
        (["--threads", "3", "--devices-per-node", "2"], 3),
        (["--loader-threads", "5"], 5),
        (["--device", "cuda", "--devices-per-node", "4"], 10),
        (["--device", "cuda"], 16),
        (["--device", "cuda", "--devices-per-node", "64"], 1),
        (["--device", "cuda", "--loader-threads", "20"], 20),
    ],
)
def test_a_gpus_loader_has_its_share_of_the_cores_but_no_more_than_sixteen(
    flags: list[str], threads: int, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("trainers.contract.flags.usable_cores", lambda: 40)
    monkeypatch.setattr("trainers.contract.flags.os.cpu_count", lambda: 40)
    monkeypatch.setattr("trainers.contract.flags.gpus_of_node", lambda: 0)
    assert parse_flags(resnet50, [*FLAGS, *flags]).loader_threads == threads


@pytest.mark.parametrize(
    ("usable", "devices", "threads"),
    [(80, 1, 10), (80, 4, 10), (80, 8, 10), (10, 1, 10), (40, 8, 5)],
)
def test_one_gpu_of_a_node_has_no_more_loader_threads_than_each_of_all(
    usable: int, devices: int, threads: int, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("trainers.contract.flags.usable_cores", lambda: usable)
    monkeypatch.setattr("trainers.contract.flags.os.cpu_count", lambda: 80)
    monkeypatch.setattr("trainers.contract.flags.gpus_of_node", lambda: 8)
    flags = [*FLAGS, "--device", "cuda", "--devices-per-node", str(devices)]
    assert parse_flags(resnet50, flags).loader_threads == threads


def test_a_nodes_gpus_are_those_of_its_driver(tmp_path: Path):
    assert gpus_of_node(tmp_path) == 0
    for address in ("0000:3b:00.0", "0000:af:00.0"):
        (tmp_path / "proc/driver/nvidia/gpus" / address).mkdir(parents=True)
    assert gpus_of_node(tmp_path) == 2


@pytest.mark.parametrize(
    ("maker", "flags", "expected"),
    [
        ("AuthenticAMD", "fpu avx avx2", True),
        ("AuthenticAMD", "fpu avx", False),
        ("GenuineIntel", "fpu avx avx2", False),
    ],
)
def test_processors_of_amd_are_told_by_what_the_kernel_says(tmp_path, maker, flags, expected):
    assert not is_amd_with_avx2(tmp_path)
    (tmp_path / "proc").mkdir()
    said = f"vendor_id\t: {maker}\nflags\t\t: {flags}\n"
    (tmp_path / "proc/cpuinfo").write_text(said)
    assert is_amd_with_avx2(tmp_path) is expected


@pytest.mark.parametrize(
    ("flags", "precision"),
    [
        ("--device cuda", Precision("float32")),
        ("--device cuda --precision amp", Precision("float16", 128.0)),
        ("--device cuda --precision amp --dynamic-loss-scale", Precision("float16", DYNAMIC)),
        ("--device cuda --precision fp16", Precision("float16", 128.0)),
        ("--device cuda --precision fp16 --dynamic-loss-scale", Precision("float16", DYNAMIC)),
        ("--device cuda --precision bf16", Precision("bfloat16")),
        ("--device cuda --precision tf32", Precision("tf32")),
        ("--precision amp", Precision("bfloat16")),
        ("--precision bf16", Precision("bfloat16")),
    ],
)
def test_amp_is_float16_with_a_fixed_loss_scale_on_a_gpu_and_bfloat16_on_a_cpu(
    flags: str, precision: Precision
):
    computes = {"cpu": ("bfloat16",), "cuda": ("float16", "bfloat16", "tf32")}
    asked = parse_flags(resnet50, [*FLAGS, *flags.split()])
    assert precision_of(resnet50, asked, computes) == precision
    assert precision.dtype == ("float32" if precision.compute == "tf32" else precision.compute)


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        ("--precision amp", "--precision amp is not to be had here on a cpu; allowed: fp32"),
        ("--precision tf32", "--precision tf32 is not to be had here on a cpu; allowed: fp32"),
        ("--device cuda --precision bf16", "here on a cuda; allowed: fp32, fp16"),
        ("--dynamic-loss-scale", "--dynamic-loss-scale is for float16; this is float32"),
    ],
)
def test_a_precision_that_the_framework_lacks_is_refused(flags: str, said: str):
    asked = parse_flags(resnet50, [*FLAGS, *flags.split()])
    with pytest.raises(steplog.Refused, match=said):
        precision_of(resnet50, asked, {"cuda": ("float16",)})


def events(text: str) -> list[dict]:
    mark = ":::MLLOG "
    lines = [line for line in text.splitlines() if line.startswith(mark)]
    return [json.loads(line.removeprefix(mark)) for line in lines]


def configure(log: steplog.StepLog, parameters: int = 25557032) -> None:
    log.configured(parameters, "torch 2", {"torch": "2"}, ["cpu", "cpu"], Precision("float32"))


def run(body: str) -> subprocess.CompletedProcess:
    """Run the body of `with log.to_the_end():` in a process of its own."""
    code = f"""
import sys, threading, time
from trainers.contract import steplog
from trainers.contract.flags import parse_flags
from trainers.recipes import resnet50
log = steplog.StepLog(resnet50, parse_flags(resnet50, {FLAGS!r}), rank=1, world_size=2)
with log.to_the_end():
    {body}
print("not reached")
"""
    return subprocess.run(
        [sys.executable, "-c", code],
        check=False,
        capture_output=True,
        text=True,
        timeout=240,
        env={"PYTHONPATH": str(TRAINERS.parent)},
    )


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        (["--input", "tfrecord"], "--data is needed unless --input is synthetic"),
        (["--shape", "image_size=31"], "--shape: image_size"),
        (["--shape", "image_size=large"], "argument --shape: invalid"),
        (["--precision", "fp64"], "argument --precision: invalid choice"),
        (["--image-size", "64"], "unrecognized arguments: --image-size 64"),
        (["--no-clip"], "--no-clip: resnet50 clips no gradients"),
    ],
)
def test_flags_that_cannot_be_are_refused_in_a_line(capsys, more, reason):
    with pytest.raises(SystemExit):
        parse_flags(resnet50, [*FLAGS, *more])
    assert f"error: {reason}" in capsys.readouterr().err.splitlines()[-1]


@pytest.mark.parametrize(("device", "near"), [("cuda", "0-3,8"), ("cpu", None)])
def test_the_log_names_the_cpus_next_to_a_gpu(device: str, near: str | None):
    """A machine without a GPU can only pretend to have found some."""
    names = ["--recipe=resnet50", "--backend=torch.backend", "--model=a.b", "--batches=a.b"]
    code = f"""
from trainers.contract import driver
driver.keep_near_gpu = {{2: "0-3,8"}}.get
driver.made = lambda flags: 1 / 0  # what follows needs a framework
driver.run({[*names, *FLAGS, f"--device={device}"]})
"""
    answer = subprocess.run(
        [sys.executable, "-c", code],
        check=False,
        capture_output=True,
        text=True,
        env={"PYTHONPATH": str(TRAINERS.parent), "LOCAL_RANK": "2"},
    )
    (said,) = (one["value"] for one in events(answer.stdout) if one["key"] == "configuration")
    assert said["cpus"] == near


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
    assert (int(first) in {1, 2, 4}) and int(second) in {2 * int(first), 4 * int(first)}


def test_a_whole_run_is_a_log_of_one_object_a_line(capfd):
    log = make_log()
    configure(log)
    log.step(5, 6.9, 0.0)
    log.step(10, 6.8, 0.0)
    log.finished([["all", "aa"]] * 2, [100, 200])
    said = events(capfd.readouterr().out)
    values = {event["key"]: event["value"] for event in said if event["key"] != "tracked_stats"}
    assert values["global_batch_size"] == 8
    assert values["world_size"] == 2
    assert values["parameters"] == 25557032
    assert values["configuration"]["shape"] == {"image_size": 224}
    assert values["configuration"]["pipeline"] == []
    first, second = (event["value"] for event in said if event["key"] == "tracked_stats")
    assert (first["iteration"], first["samples"], first["loss"]) == (5, 40, 6.9)
    assert "throughput" not in first  # the time before the first line holds the start, too
    assert second["throughput"] == pytest.approx(40 / (second["seconds"] - first["seconds"]))
    assert said[-1]["key"] == "run_stop"
    assert said[-1]["metadata"]["status"] == "success"


def test_the_first_loss_without_dropout_is_said_once_and_must_be_finite(capfd):
    make_log().without_dropout(7.5)
    make_log(rank=1).without_dropout(7.25)
    said = events(capfd.readouterr().out)
    assert [one["value"] for one in said if one["key"] == "loss_without_dropout"] == [7.5]
    with pytest.raises(steplog.Refused, match="the first loss, without dropout, is inf"):
        make_log(rank=1).without_dropout(math.inf)


@pytest.mark.parametrize(
    ("more", "printed", "first"),
    [
        ((), [1, 5, 10], [7.5]),
        (("--print-every", "1"), [*range(1, 11)], [7.5]),
        # Frameworks crop and flip what is read at random, each in its own way.
        (("--input", "tfrecord", "--data", "d"), [5, 10], []),
        (("--proof",), [5, 10], []),
    ],
)
def test_the_first_loss_is_said_where_all_have_one_batch(more, printed, first, capfd):
    log = make_log(more=more)
    assert [one for one in range(1, 11) if log.prints(one)] == printed
    for iteration in printed:
        log.step(iteration, 8.5 - iteration / 2 - 0.5, 0.0)
    said = events(capfd.readouterr().out)
    assert [one["value"] for one in said if one["key"] == "loss_without_dropout"] == first
    steps = [one["value"]["iteration"] for one in said if one["key"] == "tracked_stats"]
    assert steps == [one for one in printed if one > 1 or len(printed) == 10]


def test_changes_of_weights_are_told_in_one_short_line(capfd):
    make_log().finished([["all", "aa"]] * 2, [1, 1])
    assert "weight_changes" not in capfd.readouterr().out
    make_log().finished([["all", "aa"]] * 2, [1, 1], [math.pi * 1e-5] * 161)
    (line,) = [line for line in capfd.readouterr().out.splitlines() if "weight_changes" in line]
    assert len(line) < 4096
    assert events(line)[0]["value"] == [3.14159e-05] * 161


def test_a_wait_that_nobody_measures_is_not_said(capfd):
    make_log().step(5, 6.9, None)
    make_log().step(5, 6.9, 1.5)
    said = events(capfd.readouterr().out)
    waits = [one["value"].get("waited") for one in said if one["key"] == "tracked_stats"]
    assert waits == [None, 1.5]


def test_other_ranks_only_give_their_losses_as_signs_of_life(capfd):
    log = make_log(rank=1)
    configure(log)
    log.step(5, 6.9, 0.0)
    log.finished([["all", "aa"]] * 2, [100, 200])
    lines = capfd.readouterr().out.splitlines()
    assert lines[0].startswith("rank 1: started on ")
    assert lines[1:] == ["rank 1: iteration 5, loss 6.9", "rank 1: done"]


def test_a_model_that_is_not_the_workloads_is_refused():
    with pytest.raises(steplog.Refused, match=r"has 25575912 parameters, resnet50 has 25557032"):
        configure(make_log(), parameters=25575912)


@pytest.mark.parametrize("loss", [math.nan, math.inf])
@pytest.mark.parametrize("rank", [0, 1])
def test_a_loss_that_is_not_finite_is_refused_on_every_rank(loss, rank):
    with pytest.raises(steplog.Refused, match=r"the loss at iteration 5 is (nan|inf)"):
        make_log(rank).step(5, loss, 0.0)


def test_ranks_that_drifted_apart_are_refused():
    with pytest.raises(steplog.Refused, match="weights of rank 1 differ"):
        make_log().finished([["all", "aa"], ["all", "bb"]], [1, 1])


def test_a_batch_is_of_the_first_stage_and_replicas_of_each_stage_are_equal(capfd):
    stages = ("--pipeline", "2", "1")
    log = make_log(world_size=3, more=stages)
    configure(log)
    log.step(5, 6.9, 0.0)
    log.finished([["0", "aa"], ["0", "aa"], ["1", "bb"]], [1, 1, 1])
    assert events(capfd.readouterr().out)[-2]["key"] == "peak_memory_bytes"
    assert log.global_batch == 8
    assert log.who == "rank 0 (stage 0)"
    with pytest.raises(
        steplog.Refused, match=r"of rank 1 \(stage 0\) differ from rank 0 \(stage 0\)'s"
    ):
        make_log(world_size=3, more=stages).finished(
            [["0", "aa"], ["0", "bb"], ["1", "bb"]], [1, 1, 1]
        )
    with pytest.raises(ValueError, match="2 ranks for"):
        make_log(world_size=2, more=stages)


def test_what_else_a_workload_counts_stands_beside_the_samples(capfd):
    log = make_log()
    configure(log)
    log.step(5, 6.9, 0.0, tokens=640)
    value = events(capfd.readouterr().out)[-1]["value"]
    assert (value["samples"], value["tokens"]) == (40, 640)


def test_a_run_that_ends_well_leaves_at_once_whatever_still_runs():
    answer = run("threading.Thread(target=time.sleep, args=(60,)).start(); print('last words')")
    assert answer.returncode == 0
    assert answer.stdout.endswith("last words\n")


def test_a_refusal_is_one_marked_line_that_names_the_rank():
    answer = run("raise steplog.Refused('no images')")
    assert answer.returncode == 1
    assert answer.stdout.splitlines()[-1] == ":::REFUSED rank 1: no images"
    assert answer.stderr == ""


@pytest.mark.parametrize(
    "error",
    [
        "MemoryError()",
        "RuntimeError('[enforce] DefaultCPUAllocator: can\\'t allocate memory: 9 bytes\\n at 0')",
        "RuntimeError('DefaultCPUAllocator: not enough memory: you tried to allocate 9 bytes')",
        "RuntimeError('CUDA out of memory. Tried to allocate 20.00 MiB')",
        "RuntimeError('OOM when allocating tensor with shape[256,64,112,112]')",
        "RuntimeError('Failed to allocate 12 bytes')",
        "RuntimeError('std::bad_alloc')",
        "RuntimeError('cuDNN error: CUDNN_STATUS_ALLOC_FAILED')",
        "RuntimeError('CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling cublasCreate')",
        "RuntimeError('No algorithm worked!')",
        "RuntimeError('GET was unable to find an engine to execute this computation')",
    ],
)
def test_full_memory_has_a_mark_of_its_own_in_every_framework(error):
    answer = run(f"raise {error}")
    assert answer.returncode == 1
    last = answer.stdout.splitlines()[-1]
    assert last.startswith(":::OOM rank 1: ")
    assert len(last) > len(":::OOM rank 1: ")


def test_of_a_message_of_several_lines_the_one_on_memory_is_said():
    message = "Traceback (most recent call last):\\n File x\\nMXNetError: Failed to allocate memory"
    answer = run(f"raise RuntimeError('{message}')")
    last = answer.stdout.splitlines()[-1]
    assert last == ":::OOM rank 1: MXNetError: Failed to allocate memory"


def test_another_error_shows_where_it_happened():
    answer = run("1 / 0")
    assert answer.returncode == 1
    assert "ZeroDivisionError" in answer.stderr
    assert ":::" not in answer.stdout


def test_ranks_keep_to_cores_of_their_own_unless_they_share_all():
    count = (
        "import os; from trainers.contract.process import keep_to_own_cores; "
        "keep_to_own_cores({}, 1); print(*os.sched_getaffinity(0))"
    )

    def cores_of(rank, **said):
        return subprocess.run(
            [sys.executable, "-c", count.format(rank)],
            check=True,
            capture_output=True,
            text=True,
            env={"PYTHONPATH": str(TRAINERS.parent), **said},
        ).stdout.split()

    cores, there = [cores_of(rank) for rank in range(2)], os.sched_getaffinity(0)
    assert [len(own) for own in cores] == [1, 1]
    if len(there) > 1:
        assert cores[0] != cores[1]
    assert {*map(int, cores_of(0, CORES="shared"))} == there
