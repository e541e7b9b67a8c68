"""Which runs are run again: the one rule behind retries, `reperf runs` and the closing line."""

import shlex
from pathlib import Path

import pytest
import yaml
from reperf.building.call import check_options, options_of
from reperf.cli import main
from reperf.config import load_report
from reperf.errors import ReperfError
from reperf.layout import tables_of
from reperf.measuring.summary import summarise
from reperf.plans.report_plan import ReportPlan
from reperf.reruns import complete
from reperf.tables import MEASUREMENTS, SUMMARY, read_measurements, write_table
from reperf.training.ends import rerun_command

from tests.helpers.refusal import refused_in_one_line

TABLES = Path("results/summary.csv"), Path("results/measurements.csv")


def row(system: str, repeat: int, status: str, source: str = "") -> dict:
    folder = f"{source or 'results'}/runs/one/{system}/1n1g/{repeat}"
    return dict.fromkeys(MEASUREMENTS) | {
        "suite": "one",
        "system": system,
        "workload": "resnet50",
        "precision": "fp32",
        "batch_size_per_device": 4,
        "topology": "1n1g",
        "num_nodes": 1,
        "devices_per_node": 1,
        "repeat": repeat,
        "status": status,
        "reason": "" if status == "ok" else f"it was {status}",
        "throughput": 1.0 if status == "ok" else None,
        "unit": "images/s",
        "log": f"{folder}/train.log",
        "source": source,
    }


SUITES = [
    {"name": "one", "systems": ["pytorch", "mxnet"], "topologies": ["1n1g"], "repeats": 6},
    {"name": "two", "systems": [{"system": "pytorch", "variants": "compile"}], "repeats": 1},
]
CONFIG = {
    "device": "cpu",
    "suites": [
        {"workload": "resnet50", "precision": "fp32", "batch_size": 4} | suite for suite in SUITES
    ],
}


def leave(folder: Path, monkeypatch: pytest.MonkeyPatch, *rows: dict) -> None:
    """Leave in a folder what a call for a report of two suites leaves there."""
    monkeypatch.chdir(folder)
    report = load_report(CONFIG).model_dump(mode="json", by_alias=True)
    Path("results").mkdir(exist_ok=True)
    Path("results/plan.json").write_text(ReportPlan(profile="local", report=report).text)
    summary, measurements = TABLES
    for path in (measurements, Path(tables_of("one")[0])):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_table(path, rows, MEASUREMENTS)
    write_table(summary, summarise(read_measurements(measurements)), SUMMARY)


def named(capsys: pytest.CaptureFixture, *options: str) -> list[str]:
    main(["runs", *options])
    return capsys.readouterr().out.splitlines()


def refused(capsys: pytest.CaptureFixture, *options: str) -> str:
    assert main(["runs", *options]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    return line.removeprefix("reperf: ")


def test_runs_that_another_try_would_not_change_are_not_run_again(tmp_path, monkeypatch, capsys):
    statuses = ("ok", "oom", "unsupported", "failed", "timeout", "refused")
    rows = [row("pytorch", repeat, status) for repeat, status in enumerate(statuses, start=1)]
    leave(tmp_path, monkeypatch, *rows)
    place = "results/runs/one/pytorch/1n1g"
    assert named(capsys, "--failed") == [f"{place}/{repeat}/run.json" for repeat in (4, 5, 6)]
    assert len(named(capsys)) == 13


def test_runs_of_others_are_never_named(tmp_path, monkeypatch, capsys):
    theirs = row("mxnet", 1, "failed", "theirs.zip"), row("caffe", 2, "failed", "theirs.zip")
    leave(tmp_path, monkeypatch, row("pytorch", 1, "ok"), *theirs)
    assert refused(capsys, "--failed") == "none of these runs has failed"
    assert refused(capsys, "--system", "caffe").startswith("--system caffe: no run fits; allowed: ")


@pytest.mark.parametrize(
    ("options", "runs"),
    [
        (["--suite", "one"], 12),
        (["--suite", "one", "--system", "mxnet"], 6),
        (["--system", "pytorch"], 7),
        (["--variant", "compile"], 1),
        (["--variant", "none", "--repeat", "1"], 2),
        (["--topology", "1n1g"], 13),
    ],
)
def test_runs_are_those_of_the_plan_trained_or_not(tmp_path, monkeypatch, capsys, options, runs):
    leave(tmp_path, monkeypatch)
    assert len(named(capsys, *options)) == runs


def test_runs_of_another_report_are_named_by_its_file(tmp_path, monkeypatch, capsys):
    leave(tmp_path, monkeypatch, row("pytorch", 1, "failed"))
    other = CONFIG | {"suites": [CONFIG["suites"][0] | {"name": "other", "repeats": 1}]}
    Path("other.yaml").write_text(yaml.safe_dump(other))
    assert named(capsys, "--configfile", "other.yaml") == [
        f"results/runs/other/{system}/1n1g/1/run.json" for system in ("pytorch", "mxnet")
    ]
    assert refused(capsys, "--configfile", "missing.yaml").startswith("missing.yaml: ")


def test_an_empty_answer_is_an_error_that_says_what_there_is(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert refused(capsys).startswith(
        "results/plan.json: not there, so no report has been begun in this folder; allowed: "
    )
    leave(tmp_path, monkeypatch)
    assert refused(capsys, "--suite", "onee") == (
        "--suite onee: no run fits; allowed: one, two; did you mean one?"
    )
    assert refused(capsys, "--suite", "two", "--system", "mxnet") == (
        "--system mxnet: no run fits; allowed: pytorch"
    )
    assert refused(capsys, "--repeat", "9").endswith("allowed: 1, 2, 3, 4, 5, 6")


@pytest.mark.parametrize(
    ("call", "again"),
    [
        ("-n", "--profile slurm --forcerun $(reperf runs --failed)"),
        ("--profile mine x.zip", "--profile mine --forcerun $(reperf runs --failed)"),
        (
            "--profile local --configfile a.yaml 'my b.yaml' -j 2",
            "--profile local --configfile a.yaml 'my b.yaml' "
            "--forcerun $(reperf runs --failed --configfile 'my b.yaml')",
        ),
        (
            "--configfile=a.yaml --config systems=all --profile=local -- x.zip",
            "--configfile a.yaml --config systems=all --profile local "
            "--forcerun $(reperf runs --failed)",
        ),
        ("all -- --profile x", "--profile slurm --forcerun $(reperf runs --failed)"),
    ],
)
def test_the_command_that_runs_again_what_failed_repeats_the_call(call, again):
    options = options_of(shlex.split(call))
    assert rerun_command(options, "slurm") == f"snakemake {again}"


@pytest.mark.parametrize("target", ["all", "results/runs/one/pytorch/1n1g/1/run.json", "a.svg"])
def test_a_target_behind_configfile_is_told_where_to_stand(target):
    with pytest.raises(ReperfError, match=r": behind --configfile, .* targets before --configfile"):
        check_options(options_of(["--configfile", "a.yaml", target]))
    for call in (["--configfile", "a.yaml", "--", target], [target, "--configfile=a.yaml"]):
        check_options(options_of(call))
    check_options(options_of(["--configfile"]))


@pytest.mark.parametrize("word", ["repeats=1_0", "seed=-1_000", "time_limit=1_0.5"])
def test_a_number_that_only_snakemake_takes_for_one_is_told(word):
    with refused_in_one_line(f"--config {word}: allowed: a number without _"):
        check_options(options_of(["--config", "title=a_1", "suites=[1_0]", word]))
    check_options(options_of(["--config", "title=a_1", "device=cpu_1", "-n", word]))


@pytest.mark.parametrize("final", ["oom", "unsupported"])
def test_a_cell_of_which_some_runs_ended_for_good_is_complete(tmp_path, monkeypatch, capsys, final):
    """What `reperf runs --failed` does not name, the closing line does not ask to run again."""
    theirs = row("mxnet", 1, "failed", "theirs.zip")
    leave(tmp_path, monkeypatch, row("pytorch", 1, "ok"), row("pytorch", 2, final), theirs)
    complete(*TABLES, Path("complete.txt"))
    assert Path("complete.txt").read_text() == "2 cells, each measured or explained\n"
    assert named(capsys, "--failed") == []


def test_a_cell_with_a_run_that_failed_is_named(tmp_path, monkeypatch):
    rows = [row("pytorch", 1, "ok"), row("pytorch", 2, "oom"), row("pytorch", 3, "oom")]
    rows.append(row("pytorch", 4, "failed"))
    rows = [one | {"variant": "compile"} for one in rows]
    leave(tmp_path, monkeypatch, *rows, row("mxnet", 1, "ok"))
    with pytest.raises(ReperfError) as refusal:
        complete(*TABLES, Path("complete.txt"))
    message = str(refusal.value)
    assert message.startswith("1 of 2 cells failed: one/pytorch+compile/1n1g (partial: 3 of 4 ")
    assert message.endswith("; the report shows them")
    assert not Path("complete.txt").exists()
