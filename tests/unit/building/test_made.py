"""The list of what was made: which files the next call finds to be not as it would make them."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from reperf.building.code import code_of
from reperf.building.made import LIST, List, digest_of, making
from reperf.config import load_report
from reperf.errors import ReperfError
from reperf.layout import tables_of
from reperf.measuring.again import check_tables
from reperf.plans.planning import Plans
from reperf.plans.suite_plan import SuitePlan
from reperf.steps import measure, summarise

from tests.helpers.refusal import refused_in_one_line
from tests.helpers.step_logs import step_log
from tests.unit.measuring.test_measure import kept_run

STEP, OUTPUTS, INPUTS = "summarise", ["results/a.csv", "results/b"], ["plan.json", "c.csv"]

SMALL = {
    "name": "small",
    "workload": "resnet50",
    "precision": "fp32",
    "batch_size": 8,
    "shape": {"image_size": 64},
    "input": "synthetic",
    "systems": ["pytorch"],
}


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


def overwrite(path: str, text: str) -> None:
    """Change a file so that its size and its time of change stay."""
    before = Path(path).stat()
    assert before.st_size == len(text)
    Path(path).write_text(text)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def test_what_was_made_and_not_touched_is_current():
    assert why() is None
    assert why(inputs=[*reversed(INPUTS), INPUTS[0]]) is None  # their order is none


def test_what_is_written_again_the_same_is_current():
    for path in (*INPUTS, "results/a.csv", "results/b/figure.svg"):
        Path(path).write_text(Path(path).read_text())
    assert why() is None


@pytest.mark.parametrize(
    "text",
    [
        None,
        "",
        "{}",
        "{",
        "[]",
        "null",
        "[" * 99_999,
        '{"results/a.csv": {}}',
        '{"results/a.csv": {"code": "", "wrote": {}, "read": "", "seen": ""}}',
        "\0",
    ],
)
def test_a_list_that_says_nothing_of_them_makes_them_again(made, text: str | None):
    LIST.unlink()
    if text is not None:
        LIST.write_text(text)
    assert why() == ""
    made()
    assert why() is None


@pytest.mark.parametrize("without", OUTPUTS)
def test_an_entry_without_an_output_makes_all_again(without: str):
    wrote = json.loads(LIST.read_text())[OUTPUTS[0]]["wrote"]
    edit_entry(wrote={path: digest for path, digest in wrote.items() if path != without})
    assert why() == ""


def test_an_entry_with_one_output_more_makes_all_again():
    assert why(outputs=OUTPUTS[:1]) == ""


@pytest.mark.parametrize("path", ["results/a.csv", "results/b/figure.svg"])
def test_an_edited_output_is_told_even_if_its_time_is_the_old_one(path: str):
    named = path if path in OUTPUTS else "results/b"
    overwrite(path, Path(path).read_text().swapcase())
    assert why() == f"{named}: has changed since it was built"


def test_a_file_more_or_less_in_a_folder_is_told():
    Path("results/b/another.svg").write_text("")
    assert why() == "results/b: has changed since it was built"
    Path("results/b/another.svg").unlink()
    assert why() is None
    Path("results/b/figure.svg").rename("results/b/other.svg")
    assert why() == "results/b: has changed since it was built"


def test_what_snakemake_leaves_in_a_folder_is_nobodys():
    Path("results/b/.snakemake_timestamp").write_text("")
    assert why() is None


def test_a_missing_output_is_made_again_without_a_word():
    Path("results/a.csv").unlink()
    assert why() == ""


def test_an_input_that_changed_makes_them_again_even_if_its_time_is_the_old_one():
    overwrite("c.csv", "2")
    assert why() == ""


def test_an_input_that_is_gone_or_new_makes_them_again():
    assert why(inputs=INPUTS[:1]) == ""
    Path("d.csv").write_text("1")
    assert why(inputs=[*INPUTS, "d.csv"]) == ""
    Path("c.csv").unlink()
    assert why() == ""


def test_a_plan_counts_as_it_will_be_when_the_first_job_begins():
    assert why({"plan.json": "1"}) is None
    assert why({"plan.json": "2"}) == ""
    Path("plan.json").write_text("2")
    assert why({"plan.json": "1"}) is None
    assert why({"plan.json": "2"}) == ""
    Path("plan.json").unlink()
    assert why({"plan.json": "1"}) is None


def test_other_code_makes_them_again():
    assert json.loads(LIST.read_text())[OUTPUTS[0]]["code"] == code_of(STEP)
    edit_entry(code=code_of("measure"))
    assert why() == ""


@pytest.mark.parametrize("table", tables_of("small"))
def test_a_table_edited_together_with_its_digest_is_refused_by_its_reader(table: str):
    """The list cannot prove itself: reports and archives measure once more."""
    report = load_report({"device": "cpu", "repeats": 1, "suites": [SMALL]})
    plans = Plans(report)
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
    entered = False
    with (
        pytest.raises(
            ReperfError,
            match=r"^results/a\.csv: has changed since it was built; allowed: as built$",
        ),
        making("report", ["page"], ["c.csv", "results/a.csv"]),
    ):
        entered = True
    assert not entered
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
    assert why() == ""


def test_each_step_keeps_what_the_others_noted():
    with making("measure", ["results/m.csv"], ["c.csv"]):
        Path("results/m.csv").write_text("")
    assert why() is None
    assert List().why_again("measure", ["results/m.csv"], ["c.csv"]) is None
