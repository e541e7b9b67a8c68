"""Which runs are run again: the one rule behind retries, `reperf runs` and the closing line."""

import shlex
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from reperf.cli import main
from reperf.config import load_report
from reperf.layout import tables_of
from reperf.measuring.summary import summarise
from reperf.plans.plan_files import ReportPlan, SuitePlan
from reperf.reruns import complete, rerun_command
from reperf.tables import MEASUREMENTS, SUMMARY, read_measurements, write_table

from tests.helpers.refusal import refused_in_one_line

TABLES = Path("results/summary.csv"), Path("results/measurements.csv")
SUITES = [
    {"name": "one", "systems": ["pytorch", "mxnet"], "topologies": ["1n1g"], "repeats": 6},
    {"name": "two", "systems": [{"system": "pytorch", "variants": "compile"}], "repeats": 1},
]
SUITE = {"workload": "resnet50", "precision": "fp32", "batch_size": 4}
CONFIG = {"device": "cpu", "suites": [SUITE | suite for suite in SUITES]}


def row(system: str, repeat: int, status: str, source: str = "", variant: str = "") -> dict:
    folder = f"{source or 'results'}/runs/one/{system}/1n1g/{repeat}"
    run = {"suite": "one", "system": system, "variant": variant, "repeat": repeat}
    shared = {"workload": "resnet50", "precision": "fp32", "batch_size_per_device": 4}
    devices = {"topology": "1n1g", "num_nodes": 1, "devices_per_node": 1}
    ended = {"status": "ok", "reason": "", "throughput": 1.0, "unit": "images/s"}
    if status != "ok":
        ended |= {"status": status, "reason": f"it was {status}", "throughput": None}
    log = {"log": f"{folder}/train.log", "source": source}
    return dict.fromkeys(MEASUREMENTS) | run | shared | devices | ended | log


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def leave(*rows: dict) -> None:
    """Leave what a call for a report of two suites leaves."""
    report = load_report(CONFIG).model_dump(mode="json", by_alias=True)
    Path("results").mkdir(exist_ok=True)
    Path("results/plan.json").write_text(ReportPlan(report=report).text)
    summary, measurements = TABLES
    for path in (measurements, Path(tables_of("one")[0])):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_table(path, rows, MEASUREMENTS)
    write_table(summary, summarise(read_measurements(measurements)), SUMMARY)


@pytest.fixture
def runs(capsys) -> Callable[[str], list[str]]:
    """What `reperf runs` names, or the one line of its refusal, which begins with reperf."""

    def ask(options: str) -> list[str]:
        code = main(["runs", *options.split()])
        out, err = capsys.readouterr()
        assert (code, len(err.splitlines())) == ((1, 1) if err else (0, 0))
        return (out + err).splitlines()

    return ask


STATUSES = ("ok", "oom", "unsupported", "failed", "timeout", "refused")
ENDED = [row("pytorch", repeat, status) for repeat, status in enumerate(STATUSES, start=1)]
THEIRS = [row("mxnet", 1, "failed", "theirs.zip"), row("caffe", 2, "failed", "theirs.zip")]
PLACE = "results/runs/one/pytorch/1n1g"
NOTHING = (
    "reperf: results/plan.json: not there, so no report has been begun in this folder; allowed:"
)


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ("", 13),
        ("--suite one", 12),
        ("--suite one --system mxnet", 6),
        ("--system pytorch", 7),
        ("--variant compile", 1),
        ("--variant none --repeat 1", 2),
        ("--topology 1n1g", 13),
        # What another try would not change, and logs of others, are not run again.
        ("--failed", [f"{PLACE}/{repeat}/run.json" for repeat in (4, 5, 6)]),
        # An empty answer is an error that says what there is.
        ("--system caffe", ["reperf: --system caffe: no run fits; allowed: pytorch, mxnet"]),
        (
            "--suite onee",
            ["reperf: --suite onee: no run fits; allowed: one, two; did you mean one?"],
        ),
        ("--suite two --system mxnet", ["reperf: --system mxnet: no run fits; allowed: pytorch"]),
        ("--repeat 9", ["reperf: --repeat 9: no run fits; allowed: 1, 2, 3, 4, 5, 6"]),
        ("--configfile missing.yaml", ["reperf: missing.yaml: No such file or directory"]),
    ],
)
def test_runs_are_those_of_the_plan_trained_or_not(runs, options, named):
    assert runs("")[0].startswith(NOTHING)
    leave(*ENDED, *THEIRS)
    answer = runs(options)
    assert named in (answer, len(answer))


def test_a_search_that_failed_is_named_before_the_runs_that_it_has_failed(runs):
    found = "results/largest/mxnet/b/batch.json"
    leave(row("mxnet", 1, "failed"), row("pytorch", 1, "ok"), *THEIRS)
    suite = load_report(CONFIG).suites[0]
    plan = SuitePlan(suite=suite, cells=(), plans={}, batches={"mxnet": found})
    for path, text in (("results/suites/one/plan.json", plan.text), (found, "{")):
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_text(text)
    said = runs("--failed --system mxnet")
    assert said[:2] == [found, "results/runs/one/mxnet/1n1g/1/run.json"]


def test_runs_of_another_report_are_named_by_its_file(runs):
    leave(*ENDED)
    other = CONFIG | {"suites": [CONFIG["suites"][0] | {"name": "other", "repeats": 1}]}
    Path("other.yaml").write_text(yaml.safe_dump(other))
    assert runs("--configfile other.yaml") == [
        f"results/runs/other/{system}/1n1g/1/run.json" for system in ("pytorch", "mxnet")
    ]


FAILED = "--forcerun $(reperf runs --failed)"


@pytest.mark.parametrize(
    ("call", "again"),
    [
        ("", FAILED),
        ("--profile mine x.zip", f"--profile mine x.zip {FAILED}"),
        ("--configfile a.yaml 'my b.yaml' -j 2", f"--configfile a.yaml 'my b.yaml' -j 2 {FAILED}"),
        ("--retries 0 -- x.zip", f"--retries 0 {FAILED} -- x.zip"),
    ],
)
def test_the_command_that_runs_again_what_failed_repeats_the_call(call, again):
    assert rerun_command(shlex.split(call)) == f"snakemake {again}"


@pytest.mark.parametrize("final", ["oom", "unsupported"])
def test_a_cell_of_which_some_runs_ended_for_good_is_complete(runs, final):
    """What `reperf runs --failed` does not name, the closing line does not ask to run again."""
    leave(row("pytorch", 1, "ok"), row("pytorch", 2, final), THEIRS[0])
    complete(*TABLES, Path("complete.txt"))
    assert Path("complete.txt").read_text() == "2 cells, each measured or explained\n"
    assert runs("--failed") == ["reperf: none of these runs has failed"]


def test_a_cell_with_a_run_that_failed_is_named():
    statuses = enumerate(("ok", "oom", "oom", "failed"), start=1)
    rows = [row("pytorch", repeat, status, variant="compile") for repeat, status in statuses]
    leave(*rows, row("mxnet", 1, "ok"))
    with refused_in_one_line(
        "1 of 2 cells failed: one/pytorch+compile/1n1g (partial: 3 of 4 "
    ) as no:
        complete(*TABLES, Path("complete.txt"))
    assert str(no.value).endswith("; the report shows them")
    assert not Path("complete.txt").exists()
