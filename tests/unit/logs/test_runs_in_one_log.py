"""Several runs in one log, and runs that go on from a checkpoint."""

from tests.unit.logs.asking import measure
from tests.unit.logs.written import GLOBAL_BATCH, written

GOLF = (
    "world_size:4 grad_accum_steps:1",
    "train_batch_tokens:32768 train_seq_len:1024 iterations:200",
)


def golf(milliseconds: int) -> list[str]:
    """A run of parameter-golf whose steps take as long."""
    steps = [
        f"step:{step}/200 train_time:{milliseconds * step}ms step_avg:{milliseconds}.00ms"
        for step in range(201)
    ]
    return [*GOLF, "warmup_step:1/20", *steps]


def test_three_runs_whose_clocks_begin_anew_are_three_results():
    runs = measure([*golf(250), *golf(500), *golf(125)])
    assert [run.run for run in runs] == [1, 2, 3]
    assert [run.throughput / GLOBAL_BATCH for run in runs] == [4, 2, 8]


def test_lines_of_two_ranks_are_no_two_runs():
    """Nothing is said again between them."""
    [run] = measure([*golf(250), *golf(500)[3:]])
    assert run.status == "refused"


def test_a_resume_that_trains_steps_again_is_measured_where_it_is_whole():
    """Steps 160 to 200 are trained twice: the first try is whole until then, the second behind."""
    before = written("deepspeed", last=200)
    after = written("deepspeed", last=400, start=1000)
    resumed = [line for line in after if "global_step" not in line or _step(line) >= 160]
    first, second = measure([*before, *resumed], widest=True)
    assert (first.status, (first.first, first.last)) == ("ok", (20, 200))
    assert (second.status, (second.first, second.last)) == ("ok", (160, 400))
    assert first.throughput == second.throughput == 4 * GLOBAL_BATCH


def test_a_resume_that_says_nothing_again_is_measured_where_it_is_whole():
    lines = written("deepspeed", last=200)
    [run] = measure([*lines, *lines[-5:]], widest=True)
    assert run.status == "ok"  # the same lines again
    later = [line for line in written("deepspeed", last=400, start=500) if "global_step" in line]
    resumed = [line for line in later if _step(line) >= 160]
    first, second = measure([*lines, *resumed], widest=True)
    assert ((first.first, first.last), (second.first, second.last)) == ((20, 200), (160, 400))
    assert first.throughput == second.throughput == 4 * GLOBAL_BATCH


def test_lines_of_a_rank_that_is_behind_are_no_resume():
    """They come at once, and not after a start."""
    lines = written("deepspeed", last=200)
    other = [line for line in written("deepspeed", last=200, start=10.1) if "global_step" in line]
    [run] = measure([*lines, *other[-5:]], widest=True)
    assert run.code == "mixed-ranks"
    assert "a run was resumed there, or the lines of several ranks" in run.reason


def _step(line: str) -> int:
    return int(line.split("global_step=")[1].split(",", maxsplit=1)[0])
