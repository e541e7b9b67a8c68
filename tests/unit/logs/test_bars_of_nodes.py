"""Progress bars of all nodes of a launch in one log, without a label, and other programs'."""

import random

import pytest
from reperf.measuring.measure import Measurement

from tests.unit.logs.asking import case, cases, check, measure, measure_one

FACTS = (("global_batch", 32), ("accumulation", 1))
SECONDS = 4  # what a step takes
RIGHT = 32 / SECONDS
HEAD = (
    "  Total train batch size (w. parallel, distributed & accumulation) = 32\n"
    "  Gradient Accumulation steps = 1\n"
    "  Total optimization steps = 1,000\n"
)
LOSS = "\n{'loss': 6.9, 'learning_rate': 1e-05, 'epoch': 0.1}\n"


def drawn(count: int, elapsed: float | None = None, total: int = 1000) -> str:
    minutes, seconds = divmod(int(count * SECONDS if elapsed is None else elapsed), 60)
    left = "?" if count == 0 else "1:00:00"
    shown = f"{count}/{total} [{minutes:02d}:{seconds:02d}<{left},  4.00s/it]"
    return f"\r{100 * count // total:3d}%|#    | {shown}"


def steps(first: int, last: int) -> str:
    return "".join(drawn(count) for count in range(first, last + 1))


def launch(nodes: int, *, announced: bool = True, apart: float = 0.0, seed: int = 1) -> str:
    """The log of a launch of 600 steps: each node is up to two of them behind the fastest.

    Args:
        apart: by how many seconds the first node's bar began earlier than the others'.
    """
    rng = random.Random(seed)
    text = HEAD * nodes if announced else ""
    text += drawn(0) * nodes
    shown = [0] * nodes
    for count in range(1, 603):
        for node in rng.sample(range(nodes), nodes):
            late = rng.randint(0, 2)
            while shown[node] < min(600, count - late):
                shown[node] += 1
                text += drawn(shown[node], shown[node] * SECONDS + (0 if node else apart))
        text += LOSS if count % 50 == 0 else ""
    return text


def held_back(nodes: int, held: int, apart: float = 0.0) -> str:
    """The same where a launcher holds back so many of each node's lines."""
    text = HEAD * nodes
    for begin in range(0, 600, held):
        for node in random.Random(begin).sample(range(nodes), nodes):
            text += drawn(0) if begin == 0 else ""
            for count in range(begin + 1, begin + held + 1):
                text += drawn(count, count * SECONDS + (0 if node else apart))
        text += LOSS
    return text


def with_a_foreign_bar(at: int, name: str, seconds: float, head: str = HEAD) -> str:
    """A training in which another program draws a bar of the same total, before a count."""
    foreign = "".join(name + drawn(n, n * seconds).lstrip("\r") + "\r" for n in range(1001))
    bars = [drawn(count) for count in range(601)]
    bars[50] += LOSS
    return head + "".join([*bars[:at], "\n", foreign, "\n", *bars[at:]])


def measured(text: str) -> list[Measurement]:
    return measure(text.encode() + b"\n", facts=FACTS, ends=(60, 460))


def speeds(text: str) -> list[float | None]:
    return [one.throughput for one in measured(text)]


@pytest.mark.parametrize("announced", [True, False])
@pytest.mark.parametrize(("nodes", "seed"), [(1, 0), (2, 0), (2, 1), (16, 2)])
def test_the_bars_of_all_nodes_are_one_run(announced, nodes, seed):
    assert speeds(launch(nodes, announced=announced, seed=seed)) == [RIGHT]


@pytest.mark.parametrize("held", [40, 200, 600])
def test_bars_that_a_launcher_holds_back_are_one_run(held):
    assert speeds(held_back(8, held) * 2) == [RIGHT, RIGHT]


@pytest.mark.parametrize("announced", [True, False])
def test_two_launches_are_two_runs(announced):
    both = (launch(4, announced=announced, seed=seed) for seed in (1, 2))
    assert speeds("\n".join(both)) == [RIGHT, RIGHT]


def test_bars_that_began_at_several_times_are_no_finer_clock_than_that():
    for far in (launch(4, apart=30.0), held_back(4, 40, apart=30.0)):
        check(measured(far)[0], "..printed in steps of 31 s, too coarse for")
    assert speeds(held_back(4, 600, apart=30.0)) == [RIGHT]  # one bar shows every count first
    for seed in range(3):
        assert speeds(launch(4, apart=5.0, seed=seed)) == [pytest.approx(RIGHT, rel=0.01)]


@pytest.mark.parametrize("seconds", [0.02, 3.0, 4.5])
@pytest.mark.parametrize("at", [0, 61, 300])
def test_a_foreign_bar_of_the_same_total_gives_no_number(at, seconds):
    assert speeds(with_a_foreign_bar(at, "Map: ", seconds)) == [RIGHT]
    assert set(speeds(with_a_foreign_bar(at, "", seconds))) <= {RIGHT, None}


@pytest.mark.parametrize("seconds", [0.02, 3.6, 4.5])
@pytest.mark.parametrize("at", [51, 300])
def test_without_an_announcement_nothing_says_which_bar_is_the_trainings(at, seconds):
    *_, newest = measured(with_a_foreign_bar(at, "", seconds, head=""))
    check(newest, "..two progress bars of 1000 steps take turns at iteration")


def test_a_label_in_front_of_all_lines_is_no_name_of_a_bar():
    lines = (HEAD + launch(1).removeprefix(HEAD).replace("\r", "\n")).splitlines()
    assert speeds("\n".join(f"worker-1: {line}" for line in lines)) == [RIGHT]


def test_a_bar_that_goes_on_after_another_node_has_drawn_its_first_keeps_its_clock():
    """The steps from there on are not the second node's, whose clock begins anew."""
    text = HEAD + steps(0, 60) + "\n" + HEAD.splitlines(keepends=True)[-1] + drawn(0)
    text += "".join(drawn(count) + drawn(count - 60) for count in range(61, 601))
    assert set(speeds(text)) <= {RIGHT, None}


def unannounced(*, before: str = "", after: str = "") -> bytes:
    """Hugging Face's Trainer below the log level of its announcement, as it is by default."""
    text = before + "\rMap: " + drawn(7, total=8).lstrip("\r") + "\n"
    for last in range(50, 301, 50):
        text += steps(last - 49, last) + LOSS + after * (last == 200)
    return f"{text}\n".encode()


EVALUATING = drawn(1, total=50) + "\n"
EVALUATED = "\n{'eval_loss': 1.2, 'eval_runtime': 9, 'epoch': 0.2}\n"
WRITING = "\rWriting: " + EVALUATING.lstrip("\r")
LACKING = (
    "..; allowed: --batch-size and --topology and --accumulation, "
    "or --global-batch and --accumulation"
)


@cases(
    case(
        "of the first dictionary", unannounced(), wide=True, facts=FACTS, first=51, throughput=8.0
    ),
    # Nothing behind an evaluation is taken; a bar with a name is another.
    case("a bar", unannounced(after=EVALUATING), wide=True, facts=FACTS, widest=(51, 200)),
    case("an evaluation", unannounced(after=EVALUATED), wide=True, facts=FACTS, widest=(51, 200)),
    case("a named bar", unannounced(after=WRITING), wide=True, facts=FACTS, widest=(51, 300)),
    case(
        "evaluations before training",
        unannounced(before=EVALUATING + EVALUATED),
        wide=True,
        facts=FACTS,
        widest=(51, 300),
    ),
    case("what lacks is named with all that goes with it", unannounced(), LACKING, wide=True),
)
def test_a_trainer_that_announces_nothing(log, how, reason, expected):
    check(measure_one(log, **how), reason, **expected)
