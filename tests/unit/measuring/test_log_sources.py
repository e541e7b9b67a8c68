"""Suites that take logs of others: their rows, their cells, and what cannot be placed."""

import zipfile
from pathlib import Path

import pytest
from matplotlib.text import Text
from reperf.config import Suite, load_report
from reperf.drawing.figures import draw_nothing, draw_suite
from reperf.errors import ReperfError
from reperf.files import sha256
from reperf.logs.configured import facts_of_configuration, variant_said
from reperf.logs.facts import Facts
from reperf.measuring.found_logs import files_of
from reperf.measuring.log_sources import check_sources, measure_suite
from reperf.measuring.summary import summarise
from reperf.report.context import gather
from reperf.report.html import render_html
from reperf.report.markdown import render_markdown
from reperf.tables import (
    MEASUREMENTS,
    SUMMARY,
    read_measurements,
    read_summary,
    write_table,
)

from tests.helpers.step_logs import event, step_log
from tests.unit.measuring.test_measure import RUN, kept_run

LOGS = Path(__file__).parents[2] / "data" / "logs"
RESNET50 = (LOGS / "oneflow_resnet50_2n8g_b128_fp32.log").read_text()
SUITE = {"name": "theirs", "workload": "resnet50", "precision": "fp32"}
LIKE_OURS = {"shape": {"image_size": 64}, "input": "synthetic", "batch_size": 8}
"""What a suite says that takes the runs of test_measure."""


def faster(text: str, seconds: float) -> str:
    """The same log with its window's end some seconds earlier."""
    return text.replace("1597933977.6064055", f"{1597933977.6064055 - seconds:.7f}")


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """Two repeats on 2n8g, one on 1n1g that is cut, in DLPerf's naming."""
    path = tmp_path / "oneflow.zip"
    single = RESNET50.replace("= 8", "= 1").replace("= 2", "= 1")
    with zipfile.ZipFile(path, "w") as members:
        members.writestr("logs/2n8g/r50_b128_fp32_2.log", faster(RESNET50, 0.5))
        members.writestr("logs/2n8g/r50_b128_fp32_1.log", RESNET50)
        members.writestr("logs/1n1g/r50_b128_fp32_1.log", single.splitlines()[0] + "\n")
        members.writestr("logs/README.txt", "how it was run")
    return path


def rows_of(*sources: object, **suite: object) -> list[dict]:
    settings = SUITE | suite | {"from": [str(s) if isinstance(s, Path) else s for s in sources]}
    return measure_suite(Suite.model_validate(settings), [])


def test_each_log_is_a_row_of_the_formats_system(archive):
    rows = [row for row in rows_of(archive) if row["status"] == "ok"]
    assert [row["repeat"] for row in rows] == [1, 2]
    assert {row["system"] for row in rows} == {"oneflow"}
    assert {row["topology"] for row in rows} == {"2n8g"}
    assert {row["batch_size_per_device"] for row in rows} == {128}
    assert {row["source"] for row in rows} == {"oneflow.zip"}
    assert [row["log"] for row in rows] == [
        "oneflow.zip/logs/2n8g/r50_b128_fp32_1.log",
        "oneflow.zip/logs/2n8g/r50_b128_fp32_2.log",
    ]
    assert round(rows[0]["throughput"], 2) == 5915.65
    assert len(rows[0]["log_sha256"]) == 64


def test_a_log_of_no_known_format_is_refused_and_still_has_its_cell(archive, capsys):
    [bad] = [row for row in rows_of(archive) if row["status"] != "ok"]
    assert bad["status"] == "refused"
    assert "no known format" in bad["reason"]
    assert bad["topology"] == ""
    assert "1n1g/r50_b128_fp32_1.log: in no cell: no known format" in capsys.readouterr().err


def test_repeats_are_numbered_in_the_order_in_which_people_count(tmp_path):
    with zipfile.ZipFile(tmp_path / "oneflow.zip", "w") as members:
        for n in (1, 2, 10):
            members.writestr(f"2n8g/r50_b128_fp32_{n}.log", faster(RESNET50, n / 10))
    rows = rows_of(tmp_path / "oneflow.zip")
    assert [(row["repeat"], row["log"][-7:]) for row in rows] == [
        (1, "2_1.log"),
        (2, "2_2.log"),
        (3, "_10.log"),
    ]


def test_a_folder_and_a_file_are_sources_too(tmp_path):
    folder = tmp_path / "mine" / "2n8g"
    folder.mkdir(parents=True)
    (folder / "r50_b128_fp32_1.log").write_text(RESNET50)
    [row] = rows_of(tmp_path / "mine")
    assert row["log"] == "mine/2n8g/r50_b128_fp32_1.log"
    assert row["log_sha256"] == sha256(folder / "r50_b128_fp32_1.log")
    [row] = rows_of(folder / "r50_b128_fp32_1.log")
    assert row["log"] == "r50_b128_fp32_1.log"


def test_what_no_log_says_comes_from_the_configuration(tmp_path):
    lines = [line for line in RESNET50.splitlines(keepends=True) if "train:" in line]
    path = tmp_path / "x.log"
    path.write_text("".join(lines))
    [row] = rows_of(path)
    assert (row["status"], row["topology"]) == ("refused", "")
    source = {"path": str(path), "topology": "2n8g", "system": "oneflow", "variant": "xla"}
    [row] = rows_of(source, batch_size=128)
    assert (row["status"], row["system"], row["variant"]) == ("ok", "oneflow", "xla")
    path.write_text(RESNET50)
    [row] = rows_of(source, batch_size=96)
    assert row["reason"] == "batch size per device is 128 by the log, 96 by the configuration"


def test_the_published_method_is_asked_for_by_name(archive):
    rows = rows_of({"path": str(archive), "method": "published"})
    assert [row["throughput"] for row in rows if row["status"] == "ok"] == [5915.65, 6002.34]
    assert {row["method"] for row in rows} == {"published"}


def test_kept_runs_of_ours_keep_their_records_facts(tmp_path):
    kept_run(tmp_path / "kept" / "1", step_log())
    kept_run(tmp_path / "kept" / "2", step_log(), status="timeout", reason="no end after 9 s")
    first, second = rows_of(tmp_path / "kept", **LIKE_OURS)
    assert (first["system"], first["topology"], first["batch_size_per_device"]) == (
        RUN.system,
        RUN.topology,
        RUN.batch_size,
    )
    assert (second["status"], second["reason"]) == ("timeout", "no end after 9 s")


def test_cells_of_others_stand_behind_our_own_and_are_never_mixed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    kept_run(RUN.folder, step_log())
    kept_run(tmp_path / "theirs" / "1", step_log(rate=99.0))
    settings = SUITE | LIKE_OURS | {"name": "small", "from": str(tmp_path / "theirs")}
    rows = measure_suite(Suite.model_validate(settings), [RUN])
    write_table(tmp_path / "m.csv", rows, MEASUREMENTS)
    cells = summarise(read_measurements(tmp_path / "m.csv"))
    write_table(tmp_path / "s.csv", cells, SUMMARY)
    assert [(cell["source"], cell["n"]) for cell in cells] == [("", 1), ("theirs", 1)]


def test_logs_in_no_cell_are_in_the_measurements_alone(archive, tmp_path):
    write_table(tmp_path / "m.csv", rows_of(archive), MEASUREMENTS)
    measurements = read_measurements(tmp_path / "m.csv")
    [cell] = summarise(measurements)
    assert len(measurements) == 3
    assert (cell["topology"], cell["n"]) == ("2n8g", 2)


def test_sources_that_are_not_there_are_one_line(tmp_path):
    def report(source):
        return load_report({"suites": [SUITE | {"from": source}]})

    with pytest.raises(ReperfError, match=r"suite theirs: from: nowhere.zip is not there"):
        check_sources(report("nowhere.zip"))
    with pytest.raises(ReperfError, match=r"unknown log format 'morse'; allowed: deepspeed, "):
        check_sources(report({"path": str(tmp_path), "format": "morse"}))
    with pytest.raises(ReperfError, match=r"suites.theirs.from: a.zip appears twice"):
        report(["x/a.zip", "y/a.zip"])


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"workload": "bert-base"}, "workload is resnet50 by the log, bert-base by the"),
        ({"precision": "amp"}, "precision is fp32 by the run record, amp by the configuration"),
        (
            {"shape": {"image_size": 224}, "systems": ["pytorch"]},
            "image size is 64 by the run record, 224 by the configuration",
        ),
    ],
)
def test_logs_of_what_the_suite_does_not_train_are_refused(tmp_path, change, reason):
    kept_run(tmp_path / "theirs" / "1", step_log())
    suite = {"batch_size": 8} | change | {"from": str(tmp_path / "theirs")}
    [row] = measure_suite(Suite.model_validate(SUITE | suite), [])
    assert row["status"] == "refused"
    assert reason in row["reason"]


FLAGS = {
    "workload": "resnet50",
    "shape": {"image_size": 224},
    "precision": "fp32",
    "batch_size": 8,
    "pipeline": [],
    "input": "tfrecord",
    "data": "data/embedded/tfrecord",
    "device": "cuda",
    "devices_per_node": 2,
    "compile": False,
    "load_only": None,
    "proof": False,
}
"""What a trainer of ours says about itself."""


def said_by_trainer(folder: Path, framework: str = "torch 2.13.0", **flags: object) -> Path:
    """A log of a trainer that was given some flags, without a record."""
    start, *rest = step_log()
    said = [event("configuration", FLAGS | flags), event("framework", framework)]
    path = folder / "1n2g" / "train.log"
    path.parent.mkdir()
    path.write_text("".join(f"{line}\n" for line in [start, *said, *rest]))
    return path


def test_what_a_log_of_ours_says_is_what_the_suite_says(tmp_path):
    said_by_trainer(tmp_path)
    [row] = rows_of({"path": str(tmp_path), "system": "pytorch"}, data="embedded")
    assert (row["status"], row["reason"]) == ("ok", "")
    assert (row["batch_size_per_device"], row["topology"], row["variant"]) == (8, "1n2g", None)


@pytest.mark.parametrize(
    ("flags", "reason"),
    [
        ({"precision": "amp"}, "precision is amp by the log, fp32 by the configuration"),
        ({"shape": {"image_size": 32}}, "image size is 32 by the log, 224 by the configuration"),
        ({"image_size": 32, "shape": None}, "image size is 32 by the log, 224 by the conf"),
        ({"workload": "vgg16"}, "workload is resnet50 by the log, vgg16 by the log"),
        ({"batch_size": 4}, "global batch is 16 by the log, 8 by the log"),
        ({"devices_per_node": 8}, "devices per node is 8 by the log, 2 by the path"),
        ({"input": "synthetic"}, "input is synthetic by the log, records by the configuration"),
        ({"data": "data/other/tfrecord"}, "data set is other by the log, embedded by the conf"),
        ({"proof": True}, "proof is on by the log, off by the configuration"),
        ({"load_only": 5.0}, "load_only is 5.0 by the log: it loads batches, and trains on none"),
        ({"framework": "torch 2.13.0"}, "framework is torch by the log, oneflow by the conf"),
        ({"compile": True}, "compile is on by the log, off by the configuration"),
        ({"recipe": "vgg16"}, "recipe is vgg16 by the log, resnet50 by the configuration"),
        ({"backend": "torch.backend"}, "framework is torch by the log, oneflow by the log"),
    ],
)
def test_a_log_of_ours_that_says_otherwise_than_the_suite_is_refused(tmp_path, flags, reason):
    said_by_trainer(tmp_path, **{"framework": "oneflow 1.0", **flags})
    source = {"path": str(tmp_path), "system": "oneflow", "variant": "dynamic-loss-scale"}
    [row] = rows_of(source, data="embedded")
    assert (row["status"], row["throughput"]) == ("refused", None)
    assert row["reason"].startswith(reason)


def rows_in(tmp_path, asked, compute, precision, **flags):
    """The rows of a suite in a precision: of a log that was asked for one, and its data type."""
    tmp_path.mkdir()
    path = said_by_trainer(tmp_path, precision=asked, **flags)
    computed = event("precision", {"compute": compute, "weights": "float32"})
    path.write_text(f"{computed}\n{path.read_text()}")
    return rows_of({"path": str(tmp_path), "system": "pytorch"}, precision=precision)


@pytest.mark.parametrize(
    ("asked", "compute", "taken", "refused"),
    [
        ("amp", "float16", "amp fp16", "fp32 tf32 bf16"),
        ("fp16", "float16", "amp fp16", "fp32 bf16"),
        ("amp", "bfloat16", "amp bf16", "fp32 fp16"),  # on a CPU, or of an earlier version
        ("bf16", "bfloat16", "bf16", "amp fp16"),
        ("tf32", "tf32", "tf32", "fp32 amp"),
        ("fp32", "float32", "fp32", "tf32 amp"),
    ],
)
def test_a_log_of_ours_is_taken_by_suites_of_its_precision_and_by_what_amp_was(
    tmp_path, asked, compute, taken, refused
):
    status = {
        precision: rows_in(tmp_path / precision, asked, compute, precision)[0]["status"]
        for precision in (*taken.split(), *refused.split())
    }
    assert {one for one, said in status.items() if said == "ok"} == set(taken.split())


def test_a_log_of_ours_that_adds_up_gradients_is_told_apart_and_its_batches_are_counted(tmp_path):
    said_by_trainer(tmp_path, accumulation=2, batch_size=4)
    [row] = rows_of({"path": str(tmp_path), "system": "pytorch"}, batch_size=4)
    assert (row["status"], row["variant"], row["global_batch"]) == ("ok", "accumulation-2", 16)
    [row] = rows_of({"path": str(tmp_path), "system": "pytorch"}, batch_size=4, accumulation=4)
    assert row["reason"] == "gradient accumulation is 2 by the log, 4 by the configuration"
    named = {"path": str(tmp_path), "system": "pytorch", "variant": "accumulation-2"}
    [row] = rows_of(named, batch_size=4)
    assert (row["status"], row["variant"]) == ("ok", "accumulation-2")


def test_a_log_of_an_earlier_versions_variant_is_told_apart_in_the_same_suite(tmp_path):
    [row] = rows_in(tmp_path / "x", "amp", "bfloat16", "amp", bf16=True)
    assert (row["status"], row["variant"]) == ("ok", "bf16")


def test_a_log_of_ours_in_mixed_precision_is_told_by_its_data_types_too(tmp_path):
    path = said_by_trainer(tmp_path)
    mixed = event("precision", {"compute": "float16", "weights": "float32"})
    path.write_text(f"{mixed}\n{path.read_text()}")
    [row] = rows_of(tmp_path)
    assert row["reason"] == "precision is fp32 by the log, fp16 by the log"


@pytest.mark.parametrize(
    ("system", "variant", "switches"),
    [
        ("pytorch", "compile", {}),
        ("tensorflow2", "xla", {}),
        (None, "compile", {}),
        ("pytorch", "compile+no-clip", {"no_clip": True}),
        ("torch-pipeline", "gpipe", {"compile": False, "schedule": "gpipe"}),
        ("paddle-fleet", "push-every-7", {"compile": False, "push_every": 7}),
    ],
)
def test_variants_that_nobody_names_are_those_that_the_log_says(
    tmp_path, system, variant, switches
):
    framework = {"tensorflow2": "tensorflow 2.0", "paddle-fleet": "paddle 1.8"}.get(
        system, "torch 2"
    )
    said_by_trainer(tmp_path, framework, **{"compile": True, **switches})
    [row] = rows_of({"path": str(tmp_path), "system": system})
    assert (row["status"], row["variant"]) == ("ok", variant)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (("oneflow", "jax"), "framework is oneflow by {one}, jax by {other}"),
        (('"cpu"', '"nvidia"'), "device is cpu by {one}, nvidia by {other}"),
        (("data/embedded", "data/other"), "data set is embedded by {one}, other by {other}"),
    ],
)
def test_repeats_of_a_cell_are_of_one_framework_device_and_data_set(tmp_path, change, reason):
    log = said_by_trainer(tmp_path, "oneflow 1.0", device="cpu", data="data/embedded/tfrecord")
    text = log.read_text().replace("1003.", "1004.").replace(*change)
    log.with_name("zz.log").write_text(text)
    first, second = rows_of(tmp_path)
    assert (first["status"], second["status"]) == ("ok", "refused")
    assert second["reason"] == reason.format(one=first["log"], other=second["log"])


def test_a_log_of_another_model_than_the_workloads_is_refused(tmp_path):
    log = said_by_trainer(tmp_path)
    log.write_text(log.read_text().replace("25557032", "25557033"))
    [row] = rows_of(tmp_path)
    assert row["reason"].startswith("parameter count is 25557033 by the log, 25557032 by")


def test_a_variant_that_holds_another_ones_switch_is_told_from_it():
    said = facts_of_configuration({"together": True, "push_every": 100})
    assert variant_said(Facts().add("the log", said), "paddle-fleet") == "geo"
    said = facts_of_configuration({"together": True, "push_every": None})
    assert variant_said(Facts().add("the log", said), "paddle-fleet") == "async"


def test_a_run_stands_for_no_other_system_or_variant_than_its_record_says(tmp_path):
    kept_run(tmp_path / "kept" / "1", step_log())
    source = {"path": str(tmp_path / "kept")}
    for said, reason in (
        ({"system": "oneflow"}, "system is pytorch by the run record, oneflow by the conf"),
        ({"variant": "compile"}, "variant is none by the run record, compile by the conf"),
    ):
        [row] = rows_of(source | said, **LIKE_OURS)
        assert row["reason"].startswith(reason)


def test_a_run_in_another_shape_than_the_usual_one_is_refused_where_the_suite_leaves_it_out(
    tmp_path,
):
    kept_run(tmp_path / "kept" / "1", step_log())
    [row] = rows_of(tmp_path / "kept", **LIKE_OURS | {"shape": {}})
    assert row["reason"] == "image size is 64 by the run record, 224 by the configuration"


@pytest.mark.parametrize("system", ["pytorch", "somebody"])
def test_a_log_whose_format_tells_the_system_is_of_no_other(archive, system):
    rows = rows_of({"path": str(archive), "system": system})
    assert {row["status"] for row in rows} == {"refused"}
    reason = f"system is oneflow by the log's format, {system} by the configuration"
    assert reason in {row["reason"] for row in rows}


@pytest.mark.parametrize(
    ("system", "said"),
    [
        ("pytorch", ""),
        ("mine", ""),
        ("oneflow", "framework is torch by the log's format, oneflow by the configuration"),
    ],
)
def test_a_programs_log_is_of_any_system_of_its_framework(system, said):
    source = {"path": str(LOGS / "ran_mmengine.log"), "system": system, "topology": "1n1g"}
    [row] = rows_of(source, batch_size=8)
    assert (row["status"], row["system"]) == ("refused" if said else "ok", system)
    assert row["reason"] == said


def test_an_edited_log_beside_its_record_is_refused(tmp_path):
    log = kept_run(tmp_path / "theirs" / "1", step_log()) / "train.log"
    log.write_text(log.read_text().replace("1022.2", "1003.2"))
    [row] = rows_of(tmp_path / "theirs", **LIKE_OURS)
    assert (row["status"], row["throughput"]) == ("refused", None)
    assert row["reason"] == "the log has changed since its run record was written"


def test_a_log_that_counts_something_else_is_refused(archive):
    suite = Suite.model_validate(SUITE | {"workload": "bert-base", "from": str(archive)})
    rows = measure_suite(suite, [])
    assert {row["status"] for row in rows} == {"refused"}
    assert "it counts images/s, which is not what bert-base counts" in {r["reason"] for r in rows}


def test_a_file_too_large_for_a_record_is_none(tmp_path):
    record = kept_run(tmp_path / "theirs" / "1", step_log()) / "run.json"
    with record.open("r+b") as stream:
        stream.truncate(30 << 30)  # a hole: the disk holds none of it
    [row] = rows_of(tmp_path / "theirs", batch_size=8, workload="resnet50")
    assert "nothing says its batch size per device" in row["reason"]
    assert record not in files_of(tmp_path / "theirs")


def test_a_suite_whose_logs_are_all_in_no_cell_still_has_figures_and_a_report(
    tmp_path, published_figures
):
    (tmp_path / "no.log").write_text("nothing\n")
    report = load_report({"suites": [SUITE | {"from": str(tmp_path / "no.log")}]})
    write_table(tmp_path / "m.csv", measure_suite(report.suites[0], []), MEASUREMENTS)
    measurements = read_measurements(tmp_path / "m.csv")
    write_table(tmp_path / "s.csv", summarise(measurements), SUMMARY)
    draw_suite(tmp_path / "s.csv", tmp_path / "theirs")
    assert "Nothing was measured" in figure_texts(draw_nothing("Speedup, suite theirs"))
    context = gather(report, [], measurements, read_summary(tmp_path / "s.csv"))
    (tmp_path / "published").symlink_to(published_figures)
    for text in (render_markdown(context, "."), render_html(context, tmp_path)):
        assert "1 log of others" in text
        assert "Logs in no cell" in text
        assert "no known format: no line is one that a format prints" in text


def test_logs_in_no_cell_stand_in_the_report_beside_the_cells(archive, tmp_path):
    report = load_report({"suites": [SUITE | {"from": str(archive)}]})
    write_table(tmp_path / "m.csv", measure_suite(report.suites[0], []), MEASUREMENTS)
    measurements = read_measurements(tmp_path / "m.csv")
    write_table(tmp_path / "s.csv", summarise(measurements), SUMMARY)
    [suite] = gather(report, [], measurements, read_summary(tmp_path / "s.csv")).suites
    assert [row.log for row in suite.unplaced] == ["oneflow.zip/logs/1n1g/r50_b128_fp32_1.log"]
    assert len(suite.cells) == 1


def figure_texts(figure) -> str:
    return " ".join([figure.get_suptitle(), *(text.get_text() for text in figure.findobj(Text))])
