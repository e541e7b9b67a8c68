"""The list of what was made: which files the next call finds to be not as it would make them."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from reperf.building.code import code_of
from reperf.building.made import LIST, List, digest_of, making
from reperf.config import load_report
from reperf.layout import tables_of
from reperf.measuring.again import check_tables
from reperf.plans.planning import Plans
from reperf.plans.suite_plan import SuitePlan
from reperf.steps import measure, summarise

from tests.helpers.refusal import refused_in_one_line
from tests.helpers.runs import kept_run
from tests.helpers.small_benchmark import SMALL
from tests.helpers.step_logs import step_log

STEP, OUTPUTS, INPUTS = "summarise", ["results/a.csv", "results/b"], ["plan.json", "c.csv"]
AGAIN = ""
TABLE, FIGURES = (f"{path}: has changed since it was built" for path in OUTPUTS)


@pytest.fixture(autouse=True)
def made(tmp_path, monkeypatch) -> Callable[[], None]:
    """Make two outputs of two inputs, as a step does; they are made when a test begins."""
    monkeypatch.chdir(tmp_path)
    for name in INPUTS:
        Path(name).write_text("1")

    def make() -> None:
        with making(STEP, OUTPUTS, INPUTS):
            Path("results/b").mkdir(parents=True, exist_ok=True)
            Path("results/a.csv").write_text("table")
            Path("results/b/figure.svg").write_text("figure")

    make()
    return make


def why(texts: dict[str, str] | None = None, **asked: list[str]) -> str | None:
    return List(texts).why_again(STEP, asked.get("outputs", OUTPUTS), asked.get("inputs", INPUTS))


def edit_entry(name: str = OUTPUTS[0], **changes: object) -> None:
    """Edit what the list says of some outputs, by the first of them."""
    content = json.loads(LIST.read_text())
    content[name] |= changes
    LIST.write_text(json.dumps(content))


def overwrite(path: str, text: str) -> Callable[[], None]:
    """Change a file so that its size and its time of change stay."""

    def change() -> None:
        before = Path(path).stat()
        assert before.st_size == len(text)
        Path(path).write_text(text)
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))

    return change


def put(path: str, text: str) -> Callable[[], object]:
    return lambda: Path(path).write_text(text)


def remove(path: str) -> Callable[[], None]:
    return lambda: Path(path).unlink()


CHANGES = {
    "nothing": (lambda: None, None),
    "the same input again": (put("c.csv", "1"), None),
    "the same output again": (put("results/b/figure.svg", "figure"), None),
    "another input": (overwrite("c.csv", "2"), AGAIN),
    "no input": (remove("c.csv"), AGAIN),
    "another output": (overwrite("results/a.csv", "TABLE"), TABLE),
    "another figure": (overwrite("results/b/figure.svg", "FIGURE"), FIGURES),
    "a figure more": (put("results/b/another.svg", ""), FIGURES),
    "a figure less": (remove("results/b/figure.svg"), FIGURES),
    "a figure of another name": (
        lambda: Path("results/b/figure.svg").rename("results/b/other.svg"),
        FIGURES,
    ),
    "what Snakemake leaves in a folder": (put("results/b/.snakemake_timestamp", ""), None),
    "no output": (remove("results/a.csv"), AGAIN),
    "other code": (lambda: edit_entry(code=code_of("measure")), AGAIN),
    "an entry without a folder": (
        lambda: edit_entry(wrote={OUTPUTS[0]: digest_of(OUTPUTS[0])}),
        AGAIN,
    ),
}


@pytest.mark.parametrize(("change", "said"), CHANGES.values(), ids=CHANGES)
def test_outputs_are_made_again_once_they_are_not_what_would_be_made(change, said):
    """Even if a file's size and time are the old ones."""
    change()
    assert why() == said


def test_they_are_made_again_of_other_inputs_or_with_other_outputs():
    assert why(inputs=[*reversed(INPUTS), INPUTS[0]]) is None  # their order is none
    Path("d.csv").write_text("1")
    assert why(inputs=INPUTS[:1]) == why(inputs=[*INPUTS, "d.csv"]) == AGAIN
    assert why(outputs=OUTPUTS[:1]) == AGAIN


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        "{",
        "null",
        "[" * 99_999,
        f'{{"{OUTPUTS[0]}": {{"code": "", "wrote": {{}}}}}}',
        "\0",
    ],
)
def test_a_list_that_says_nothing_of_them_makes_them_again(made, text: str):
    LIST.write_text(text)
    assert why() == AGAIN
    made()
    assert why() is None
    LIST.unlink()
    assert why() == AGAIN


def test_a_plan_counts_as_it_will_be_when_the_first_job_begins():
    for text in ("1", "2"):
        Path("plan.json").write_text(text)
        assert why({"plan.json": "1"}) is None
        assert why({"plan.json": "2"}) == AGAIN
    Path("plan.json").unlink()
    assert why({"plan.json": "1"}) is None


@pytest.mark.parametrize("table", tables_of("small"))
def test_a_table_edited_together_with_its_digest_is_refused_by_its_reader(table: str):
    """The list cannot prove itself: reports and archives measure once more."""
    suite = SMALL["suites"][0] | {"input": "synthetic"}
    plans = Plans(load_report({"device": "cpu", "repeats": 1, "suites": [suite]}))
    for folder, planned in plans.runs.items():
        log = step_log(batch=planned.run.global_batch, world=planned.run.world_size)
        kept_run(Path(folder), log, run=planned.run, plan=planned.digest)
    plans.write()
    measure.run("small")
    summarise.run("small")
    plan = SuitePlan.of("small")
    check_tables(plan.suite, plan.cells, plan.plans)
    text = Path(table).read_text()
    assert ",ok," in text
    Path(table).write_text(text.replace(",ok,", ",OK,"))
    edit_entry(table, wrote={table: digest_of(table)})
    with refused_in_one_line(f"{table}: is not what the logs give; allowed: as measured"):
        check_tables(plan.suite, plan.cells, plan.plans)


def test_an_output_edited_during_the_call_is_not_read():
    Path("results/a.csv").write_text("edited")
    said = "results/a.csv: has changed since it was built; allowed: as built"
    with refused_in_one_line(said), making("report", ["page"], ["c.csv", "results/a.csv"]):
        pytest.fail("it is read")
    assert "page" not in json.loads(LIST.read_text())


def test_a_step_that_fails_notes_nothing():
    before = LIST.read_bytes()
    with pytest.raises(ZeroDivisionError), making(STEP, ["results/other"], INPUTS):
        raise ZeroDivisionError
    assert LIST.read_bytes() == before


def test_what_changes_while_a_step_works_is_read_again():
    """The digests are those of before: what the step has read is not known."""
    with making(STEP, OUTPUTS, INPUTS):
        Path("c.csv").write_text("2")
    assert why() == AGAIN


def test_each_step_keeps_what_the_others_noted():
    with making("measure", ["results/m.csv"], ["c.csv"]):
        Path("results/m.csv").write_text("")
    assert why() is None
    assert List().why_again("measure", ["results/m.csv"], ["c.csv"]) is None
