"""Suites that take logs of others: their rows, their cells, and what cannot be placed."""

import zipfile
from pathlib import Path

import pytest
from matplotlib.text import Text
from reperf.config import Suite, load_report
from reperf.config.run import estimated_memory
from reperf.drawing.figures import draw_nothing, draw_suite
from reperf.errors import ReperfError
from reperf.files import sha256
from reperf.host import Gpu
from reperf.logs.configured import facts_of_flags
from reperf.logs.facts import Facts
from reperf.measuring.found_logs import files_of
from reperf.measuring.measure import Measurement
from reperf.measuring.suite_rows import check_sources, measure_suite, record_columns
from reperf.measuring.summary import summarise
from reperf.measuring.variants import variant_said
from reperf.records.run_record import Load, Power
from reperf.report.context import gather
from reperf.report.html import render_html
from reperf.report.markdown import render_markdown
from reperf.systems.workloads import load_workloads
from reperf.tables import MEASUREMENTS, SUMMARY, read_measurements, read_summary, write_table

from tests.helpers.run_records import record_of, small_run
from tests.helpers.runs import RUN, kept_run
from tests.helpers.step_logs import event, step_log
from tests.unit.logs import mlperf_lines

LOGS = Path(__file__).parents[2] / "data" / "logs"
RESNET50 = (LOGS / "oneflow_resnet50_2n8g_b128_fp32.log").read_text()
SUITE = {"name": "theirs", "workload": "resnet50", "precision": "fp32"}
LIKE_OURS = {"shape": {"image_size": 64}, "input": "synthetic", "batch_size": 8}
"""What a suite says that takes kept runs."""


def faster(text: str, seconds: float) -> str:
    """The same log with its window's end some seconds earlier."""
    return text.replace("1597933977.6064055", f"{1597933977.6064055 - seconds:.7f}")


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """Repeats on 2n8g, one on 1n1g that is cut, in DLPerf's naming."""
    path = tmp_path / "oneflow.zip"
    with zipfile.ZipFile(path, "w") as members:
        for repeat, seconds in ((10, 0.9), (2, 0.5), (1, 0)):
            log = f"logs/2n8g/r50_b128_fp32_{repeat}.log"
            members.writestr(log, faster(RESNET50, seconds))
        members.writestr("logs/1n1g/r50_b128_fp32_1.log", RESNET50.splitlines()[0] + "\n")
        members.writestr("logs/README.txt", "how it was run")
    return path


def rows_of(*sources: object, **suite: object) -> list[dict]:
    settings = SUITE | suite | {"from": [str(s) if isinstance(s, Path) else s for s in sources]}
    return measure_suite(Suite.model_validate(settings), [])


def test_each_log_is_a_row_of_the_formats_system_in_the_order_in_which_people_count(archive):
    rows = [row for row in rows_of(archive) if row["status"] == "ok"]
    assert [row["repeat"] for row in rows] == [1, 2, 3]
    assert [row["log"] for row in rows] == [
        f"oneflow.zip/logs/2n8g/r50_b128_fp32_{repeat}.log" for repeat in (1, 2, 10)
    ]
    for row in rows:
        cell = (row["system"], row["topology"], row["batch_size_per_device"], row["source"])
        assert cell == ("oneflow", "2n8g", 128, "oneflow.zip")
        assert len(row["log_sha256"]) == 64
    assert round(rows[0]["throughput"], 2) == 5915.65


def test_a_folder_and_a_file_are_sources_too(tmp_path):
    log = tmp_path / "mine/2n8g/r50_b128_fp32_1.log"
    log.parent.mkdir(parents=True)
    log.write_text(RESNET50)
    for source, name in ((tmp_path / "mine", "mine/2n8g/r50_b128_fp32_1.log"), (log, log.name)):
        [row] = rows_of(source)
        assert (row["log"], row["log_sha256"]) == (name, sha256(log))


def test_what_no_log_says_comes_from_the_configuration(tmp_path):
    path = tmp_path / "x.log"
    path.write_text("\n".join(line for line in RESNET50.splitlines() if "train:" in line) + "\n")
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
    assert [row["throughput"] for row in rows if row["status"] == "ok"][:2] == [5915.65, 6002.34]
    assert {row["method"] for row in rows} == {"published"}


def test_kept_runs_of_ours_keep_their_records_facts(tmp_path):
    kept_run(tmp_path / "kept" / "1", step_log())
    kept_run(tmp_path / "kept" / "2", step_log(), status="timeout", reason="no end after 9 s")
    first, second = rows_of(tmp_path / "kept", **LIKE_OURS)
    known = (RUN.system, RUN.topology, RUN.batch_size)
    assert (first["system"], first["topology"], first["batch_size_per_device"]) == known
    assert (second["status"], second["reason"]) == ("timeout", "no end after 9 s")


def test_cells_of_others_stand_behind_our_own_and_are_never_mixed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    kept_run(RUN.folder, step_log())
    kept_run(tmp_path / "theirs" / "1", step_log(rate=99.0))
    settings = SUITE | LIKE_OURS | {"name": "small", "from": str(tmp_path / "theirs")}
    rows = measure_suite(Suite.model_validate(settings), [RUN])
    write_table(tmp_path / "m.csv", rows, MEASUREMENTS)
    cells = summarise(read_measurements(tmp_path / "m.csv"))
    assert [(cell["source"], cell["n"]) for cell in cells] == [("", 1), ("theirs", 1)]


def test_sources_that_are_not_there_are_one_line(tmp_path):
    morse = {"path": str(tmp_path), "format": "morse"}
    for source, refusal in (
        ("nowhere.zip", r"suite theirs: from: nowhere.zip is not there"),
        (morse, r"unknown log format 'morse'; allowed: build-nanogpt, composer, "),
        (["x/a.zip", "y/a.zip"], r"suites.theirs.from: a.zip appears twice"),
    ):
        with pytest.raises(ReperfError, match=refusal):
            check_sources(load_report({"suites": [SUITE | {"from": source}]}))


@pytest.mark.parametrize(
    ("source", "suite", "reason"),
    [
        ({}, {"workload": "bert-base", "shape": {}}, "workload is resnet50 by the log, bert-base"),
        ({}, {"precision": "amp"}, "precision is fp32 by the run record, amp by the configuration"),
        # Who leaves out the shape says the usual one.
        ({}, {"shape": {}}, "image size is 64 by the run record, 224 by the configuration"),
        ({"system": "oneflow"}, {}, "system is pytorch by the run record, oneflow by the conf"),
        ({"variant": "compile"}, {}, "variant is none by the run record, compile by the conf"),
    ],
)
def test_a_kept_run_of_what_the_suite_does_not_train_is_refused(tmp_path, source, suite, reason):
    kept_run(tmp_path / "theirs" / "1", step_log())
    [row] = rows_of({"path": str(tmp_path / "theirs"), **source}, **LIKE_OURS | suite)
    assert row["status"] == "refused"
    assert row["reason"].startswith(reason)


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
    "proof": False,
}
"""What a trainer of ours says about itself."""


def said_by_trainer(folder: Path, framework: str = "torch 2.13.0", **flags: object) -> Path:
    """A log of a trainer that was given some flags, without a record."""
    start, *rest = step_log()
    said = [event("configuration", FLAGS | flags), event("framework", framework)]
    path = folder / "1n2g" / "train.log"
    path.parent.mkdir(parents=True)
    path.write_text("".join(f"{line}\n" for line in [start, *said, *rest]))
    return path


def row_of_trainer(folder: Path, source: dict | None = None, **suite: object) -> dict:
    """The row of such a log in a folder."""
    [row] = rows_of({"path": str(folder), "system": "pytorch"} | (source or {}), **suite)
    return row


def test_what_a_log_of_ours_says_is_what_the_suite_says(tmp_path):
    said_by_trainer(tmp_path)
    row = row_of_trainer(tmp_path, data="embedded")
    assert (row["status"], row["reason"]) == ("ok", "")
    assert (row["batch_size_per_device"], row["topology"], row["variant"]) == (8, "1n2g", None)


@pytest.mark.parametrize(
    ("flags", "reason"),
    [
        ({"precision": "amp"}, "precision is amp by the log, fp32 by the configuration"),
        ({"shape": {"image_size": 32}}, "image size is 32 by the log, 224 by the configuration"),
        ({"workload": "vgg16"}, "workload is resnet50 by the log, vgg16 by the log"),
        ({"batch_size": 4}, "global batch is 16 by the log, 8 by the log"),
        ({"devices_per_node": 8}, "devices per node is 8 by the log, 2 by the path"),
        ({"input": "synthetic"}, "input is synthetic by the log, records by the configuration"),
        ({"data": "data/other/tfrecord"}, "data set is other by the log, embedded by the conf"),
        ({"proof": True}, "proof is on by the log, off by the configuration"),
        ({"framework": "torch 2.13.0"}, "framework is torch by the log, oneflow by the conf"),
        ({"compile": True}, "compile is on by the log, off by the configuration"),
        ({"recipe": "vgg16"}, "recipe is vgg16 by the log, resnet50 by the configuration"),
        ({"backend": "torch.backend"}, "framework is torch by the log, oneflow by the log"),
    ],
)
def test_a_log_of_ours_that_says_otherwise_than_the_suite_is_refused(tmp_path, flags, reason):
    said_by_trainer(tmp_path, **{"framework": "oneflow 1.0", **flags})
    source = {"system": "oneflow", "variant": "dynamic-loss-scale"}
    row = row_of_trainer(tmp_path, source, data="embedded")
    assert (row["status"], row["throughput"]) == ("refused", None)
    assert row["reason"].startswith(reason)


def computing_in(folder: Path, asked: str, compute: str, **flags: object) -> Path:
    """A log that was asked for a precision, and names the data type in which it computes."""
    path = said_by_trainer(folder, precision=asked, **flags)
    computed = event("precision", {"compute": compute, "weights": "float32"})
    path.write_text(f"{computed}\n{path.read_text()}")
    return folder


@pytest.mark.parametrize(
    ("asked", "compute", "taken", "refused"),
    [
        ("amp", "float16", "amp fp16", "fp32 tf32 bf16"),
        ("fp16", "float16", "amp fp16", "fp32 bf16"),
        ("amp", "bfloat16", "amp bf16", "fp32 fp16"),  # on a CPU
        ("bf16", "bfloat16", "bf16", "amp fp16"),
        ("tf32", "tf32", "tf32", "fp32 amp"),
        ("fp32", "float32", "fp32", "tf32 amp"),
    ],
)
def test_a_log_of_ours_is_taken_by_suites_of_its_precision_and_by_what_amp_was(
    tmp_path, asked, compute, taken, refused
):
    computing_in(tmp_path, asked, compute)
    for precision in (*taken.split(), *refused.split()):
        is_taken = row_of_trainer(tmp_path, precision=precision)["status"] == "ok"
        assert is_taken == (precision in taken.split()), precision


def test_data_types_tell_precisions_apart(tmp_path):
    row = row_of_trainer(computing_in(tmp_path / "fp16", "fp32", "float16"))
    assert row["reason"] == "precision is fp32 by the log, fp16 by the log"


def test_a_log_of_ours_that_adds_up_gradients_is_told_apart_and_its_batches_are_counted(tmp_path):
    said_by_trainer(tmp_path, accumulation=2, batch_size=4)
    for source in ({}, {"variant": "accumulation-2"}):
        row = row_of_trainer(tmp_path, source, batch_size=4)
        assert (row["status"], row["variant"], row["global_batch"]) == ("ok", "accumulation-2", 16)
    row = row_of_trainer(tmp_path, batch_size=4, accumulation=4)
    assert row["reason"] == "gradient accumulation is 2 by the log, 4 by the configuration"


@pytest.mark.parametrize(
    ("framework", "system", "variant", "switches"),
    [
        ("torch 2", "pytorch", "compile", {}),
        ("tensorflow 2.0", "tensorflow2", "xla", {}),
        ("torch 2", None, "compile", {}),
        ("torch 2", "pytorch", "compile+no-clip", {"no_clip": True}),
        ("torch 2", "torch-pipeline", "gpipe", {"compile": False, "schedule": "gpipe"}),
        ("paddle 1.8", "paddle-fleet", "push-every-7", {"compile": False, "push_every": 7}),
    ],
)
def test_variants_that_nobody_names_are_those_that_the_log_says(
    tmp_path, framework, system, variant, switches
):
    said_by_trainer(tmp_path, framework, **{"compile": True, **switches})
    row = row_of_trainer(tmp_path, {"system": system})
    assert (row["status"], row["variant"]) == ("ok", variant)


def test_a_variant_that_holds_another_ones_switch_is_told_from_it():
    for name, push_every, variant in (("own_time", 100, "geo"), ("together", None, "async")):
        said = facts_of_flags({name: True, "push_every": push_every})
        assert variant_said(Facts().add("the log", said), "paddle-fleet") == variant


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


@pytest.mark.parametrize(
    ("device", "ends", "throttled", "mhz"),
    [
        ("cuda", (20, 120), 0.5, 1410.0),
        ("cuda", (20, 40), 0.1, None),
        ("cpu", (20, 120), 0.5, 3100.0),
    ],
)
def test_a_row_says_how_long_anything_held_its_devices_back(tmp_path, device, ends, throttled, mhz):
    first, last = ends
    metered = {"mean_watts": 1, "energy_joules": 1, "mean_utilisation_percent": 1}
    power = Power(**metered, mean_mhz=1410.0, throttled=0.5, first=first, last=last)
    load = Load(average=1, throttled=0.1, mhz=3100.0)
    run = RUN.model_copy(update={"device": device})
    kept_run(tmp_path / "kept" / "1", step_log(), run=run, power=power, load=load)
    [row] = rows_of(tmp_path / "kept", **LIKE_OURS)
    assert (row["throttled"], row["mhz"]) == (throttled, mhz)


OF_PROGRAM = {"log": "ran_mmengine.log", "topology": "1n1g", "batch_size": 8}
OF_SYSTEM = {"log": "oneflow_resnet50_2n8g_b128_fp32.log", "topology": "2n8g", "batch_size": 128}


@pytest.mark.parametrize(
    ("told", "system", "said"),
    [
        (OF_PROGRAM, "pytorch", ""),
        (OF_PROGRAM, "mine", ""),
        (OF_PROGRAM, "oneflow", "framework is torch by the log's format, oneflow by the conf"),
        (OF_SYSTEM, "pytorch", "system is oneflow by the log's format, pytorch by the conf"),
        (OF_SYSTEM, "mine", "system is oneflow by the log's format, mine by the configuration"),
    ],
)
def test_a_log_is_of_its_formats_system_alone_or_of_any_of_its_programs_framework(
    told, system, said
):
    source = {"path": str(LOGS / told["log"]), "system": system, "topology": told["topology"]}
    [row] = rows_of(source, batch_size=told["batch_size"])
    assert (row["status"], row["system"]) == ("refused" if said else "ok", system)
    assert row["reason"].startswith(said)
    assert bool(row["reason"]) == bool(said)


@pytest.mark.parametrize(
    ("old", "reason"),
    [
        ("model = resnet50\n", "it counts images/s, which is not what bert-base counts"),
        ("", "workload is resnet50 by the log, bert-base by the configuration"),
    ],
)
def test_a_log_that_counts_or_names_something_else_is_refused(tmp_path, old, reason):
    log = tmp_path / "2n8g/r50_b128_fp32_1.log"
    log.parent.mkdir()
    log.write_text(RESNET50.replace(old, ""))
    [row] = rows_of(tmp_path, workload="bert-base")
    assert (row["status"], row["reason"]) == ("refused", reason)


def test_a_file_too_large_for_a_record_is_none(tmp_path):
    record = kept_run(tmp_path / "theirs" / "1", step_log()) / "run.json"
    with record.open("r+b") as stream:
        stream.truncate(30 << 30)  # a hole: the disk holds none of it
    [row] = rows_of(tmp_path / "theirs", batch_size=8)
    assert "nothing says its batch size per device" in row["reason"]
    assert record not in files_of(tmp_path / "theirs")


def gathered(folder: Path, source: Path) -> object:
    """What the report of a suite says that takes a source alone; its tables lie in a folder."""
    report = load_report({"suites": [SUITE | {"from": str(source)}]})
    write_table(folder / "m.csv", measure_suite(report.suites[0], []), MEASUREMENTS)
    measurements = read_measurements(folder / "m.csv")
    write_table(folder / "s.csv", summarise(measurements), SUMMARY)
    return gather(report, [], measurements, read_summary(folder / "s.csv"))


def test_a_log_of_no_known_format_is_refused_and_stands_beside_the_cells(archive, tmp_path, capsys):
    [suite] = gathered(tmp_path, archive).suites
    log = "oneflow.zip/logs/1n1g/r50_b128_fp32_1.log"
    assert f"{log.removeprefix('oneflow.zip/logs/')}: in no cell: no" in capsys.readouterr().err
    [bad] = suite.unplaced
    assert (bad.log, bad.status, bad.topology) == (log, "refused", "")
    assert "no known format" in bad.reason
    [cell] = read_summary(tmp_path / "s.csv").itertuples()
    assert (cell.topology, cell.n, len(suite.cells)) == ("2n8g", 3, 1)


def test_a_suite_whose_logs_are_all_in_no_cell_still_has_figures_and_a_report(tmp_path):
    (tmp_path / "no.log").write_text("nothing\n")
    context = gathered(tmp_path, tmp_path / "no.log")
    draw_suite(tmp_path / "m.csv", tmp_path / "s.csv", tmp_path / "theirs")
    nothing = draw_nothing("Speedup, suite theirs")
    assert "Nothing was measured" in " ".join(one.get_text() for one in nothing.findobj(Text))
    for text in (render_markdown(context, "."), render_html(context, tmp_path)):
        assert "1 log of others" in text
        assert "Logs in no cell" in text
        assert "no known format: no line is one that a format prints" in text


def mlperf(folder: Path, benchmark: str, platform: str, step: float) -> None:
    """An MLPerf log of two nodes of two devices, whose lines name its benchmark and platform."""
    says = {"submission_benchmark": benchmark, "submission_platform": platform}
    head = [mlperf_lines.event(key, value) for key, value in says.items()]
    batch = mlperf_lines.event("global_batch_size", 32)
    steps = [
        mlperf_lines.tracked(20 * n, int(20000 * n * step), 32 / step, "step_num")
        for n in range(11)
    ]
    folder.mkdir(parents=True, exist_ok=True)
    lines = [*head, batch, *steps, mlperf_lines.STOP]
    (folder / f"{platform}.log").write_text("\n".join(lines) + "\n")


def test_a_log_of_the_open_division_names_no_workload(tmp_path):
    mlperf(tmp_path, "resnet", "x", 0.25)
    [log] = tmp_path.iterdir()
    log.write_text(mlperf_lines.event("submission_division", "open") + "\n" + log.read_text())
    [row] = rows_of({"path": str(tmp_path), "topology": "2n2g"})
    assert (row["status"], row["unconfirmed"]) == ("ok", "workload, precision, world size")


def test_logs_of_two_platforms_are_no_repeats_of_a_cell(tmp_path):
    mlperf(tmp_path, "resnet", "1xESC-N8-E11", 0.25)
    mlperf(tmp_path, "resnet", "1xESC8000-E11", 0.5)
    first, second = rows_of({"path": str(tmp_path), "topology": "2n2g"})
    assert first["status"] == "ok"
    assert second["reason"].startswith("platform is 1xESC8000-E11 by ")


def test_the_batch_of_a_device_follows_from_that_of_all_and_the_topology(tmp_path):
    """And the row marks what the configuration alone says."""
    mlperf(tmp_path, "resnet", "x", 0.25)
    [row] = rows_of({"path": str(tmp_path), "topology": "2n2g"})
    assert (row["status"], row["batch_size_per_device"], row["topology"]) == ("ok", 8, "2n2g")
    assert row["unconfirmed"] == "precision, world size"


def test_a_batch_that_the_devices_cannot_share_evenly_is_not_reckoned(tmp_path):
    mlperf(tmp_path, "resnet", "x", 0.25)
    [row] = rows_of({"path": str(tmp_path), "topology": "1n3g"})
    assert (row["status"], row["batch_size_per_device"]) == ("refused", None)


def test_a_run_of_ours_whose_ranks_were_started_again_gives_no_number(tmp_path):
    kept_run(tmp_path / "kept" / "1", [*step_log(iterations=60), *step_log(rate=50.0)])
    [row] = rows_of(tmp_path / "kept", **LIKE_OURS)
    assert row["status"] == "refused"
    assert row["reason"] == "2 runs are in one log; a run of ours writes one"


@pytest.mark.parametrize(
    ("names", "rate"), [(["NVIDIA H200"] * 2, 989e12), (["NVIDIA H200", "NVIDIA B200"], None)]
)
def test_a_row_has_the_data_sheets_rate_and_the_estimated_memory(names, rate):
    run = small_run("1n2g")
    asked = {"workload": "llama3-8b", "system": "fsdp", "precision": "bf16", "device": "cuda"}
    run = run.model_copy(update=asked | {"shape": load_workloads()["llama3-8b"].default_shape})
    gpus = tuple(Gpu(name=name, uuid="", memory_bytes=1) for name in names)
    record = record_of(run)
    record = record.model_copy(update={"host": record.host.model_copy(update={"gpus": gpus})})
    row = record_columns(record, Measurement("train.log", "mllog", "ok"))
    assert row["data_sheet_rate"] == rate
    assert row["estimated_memory"] == estimated_memory(run) > 2**36


@pytest.mark.parametrize(
    ("alone", "slowest"),
    [((0.1, 0.1, 0.12, 0.1), (2, 0.2)), ((), (None, None)), ((None,) * 4, (None, None))],
)
def test_a_row_names_the_rank_that_takes_longest_by_itself(alone, slowest):
    record = record_of(small_run("1n4g"), rank_seconds_alone=alone)
    row = record_columns(record, Measurement("train.log", "mllog", "ok"))
    rank, behind = row["slowest_rank"], row["slowest_rank_behind"]
    assert (rank, behind and round(behind, 9)) == slowest
