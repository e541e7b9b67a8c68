"""Suites that take logs of others: their rows, their cells, and what cannot be placed."""

import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from matplotlib.text import Text
from reperf.config import Suite, load_report
from reperf.config.run import estimated_memory
from reperf.drawing.figures import draw_nothing, draw_suite
from reperf.files import sha256
from reperf.host import Gpu
from reperf.logs.configured import facts_of_flags
from reperf.logs.facts import Facts
from reperf.measuring.found_logs import files_of
from reperf.measuring.measure import Measurement
from reperf.measuring.suite_rows import measure_suite, record_columns
from reperf.measuring.summary import summarise
from reperf.measuring.variants import variant_of_switches
from reperf.records.run_record import Load, Power
from reperf.report.context import gather
from reperf.report.html import render_html
from reperf.report.markdown import render_markdown
from reperf.systems.workloads import load_workloads
from reperf.tables import MEASUREMENTS, SUMMARY, read_measurements, read_summary, write_table

from tests.helpers.run_records import HOST, record_of, small_run
from tests.helpers.runs import RUN, kept_run
from tests.helpers.step_logs import event, step_log
from tests.unit.logs import mlperf_lines
from tests.unit.logs.asking import REAL

RESNET50 = (REAL / "oneflow_resnet50_2n8g_b128_fp32.log").read_text()
NAME = "2n8g/r50_b128_fp32_1.log"
SUITE = {"name": "theirs", "workload": "resnet50", "precision": "fp32"}
LIKE_OURS = {"shape": {"image_size": 64}, "input": "synthetic", "batch_size": 8}
"""What a suite says that takes kept runs."""

Make = Callable[[Path], Path]
"""Writes the log of a source into a folder: the path of the source."""


def log_in(folder: Path, text: str = RESNET50, name: str = NAME) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def rows_of(*sources: object, **suite: object) -> list[dict]:
    settings = SUITE | suite | {"from": [str(s) if isinstance(s, Path) else s for s in sources]}
    return measure_suite(Suite.model_validate(settings), [])


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """Repeats on 2n8g, one on 1n1g that is cut, in DLPerf's naming."""
    path = tmp_path / "oneflow.zip"
    with zipfile.ZipFile(path, "w") as members:
        for repeat, seconds in ((10, 0.9), (2, 0.5), (1, 0)):
            sooner = RESNET50.replace("1597933977.6064055", f"{1597933977.6064055 - seconds:.7f}")
            members.writestr(f"logs/2n8g/r50_b128_fp32_{repeat}.log", sooner)
        members.writestr("logs/1n1g/r50_b128_fp32_1.log", RESNET50.splitlines()[0] + "\n")
        members.writestr("logs/README.txt", "how it was run")
    return path


@pytest.mark.parametrize("method", ["window", "published"])
def test_each_log_is_a_row_of_the_formats_system_in_the_order_in_which_people_count(
    archive, method
):
    rows = rows_of({"path": str(archive), "method": method})
    assert {row["method"] for row in rows} == {method}
    good = [row for row in rows if row["status"] == "ok"]
    for row, (repeat, number) in zip(good, ((1, 1), (2, 2), (3, 10)), strict=True):
        name = f"oneflow.zip/logs/2n8g/r50_b128_fp32_{number}.log"
        assert (row["repeat"], row["log"], len(row["log_sha256"])) == (repeat, name, 64)
        cell = (row["system"], row["topology"], row["batch_size_per_device"], row["source"])
        assert cell == ("oneflow", "2n8g", 128, "oneflow.zip")
    speeds = [round(row["throughput"], 2) for row in good[:2]]
    assert speeds == [5915.65, 6002.34]


def test_a_folder_and_a_file_are_sources_too(tmp_path):
    log = log_in(tmp_path / "mine")
    for source, name in ((tmp_path / "mine", f"mine/{NAME}"), (log, log.name)):
        [row] = rows_of(source)
        assert (row["log"], row["log_sha256"]) == (name, sha256(log))


def test_cells_of_others_stand_behind_our_own_and_are_never_mixed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    kept_run(RUN.folder, step_log())
    kept_run(tmp_path / "theirs" / "1", step_log(rate=99.0))
    settings = SUITE | LIKE_OURS | {"name": "small", "from": str(tmp_path / "theirs")}
    rows = measure_suite(Suite.model_validate(settings), [RUN])
    write_table(tmp_path / "m.csv", rows, MEASUREMENTS)
    cells = summarise(read_measurements(tmp_path / "m.csv"))
    assert [(cell["source"], cell["n"]) for cell in cells] == [("", 1), ("theirs", 1)]


def given(text: str, name: str = NAME) -> Make:
    return lambda folder: log_in(folder, text, name)


def real(name: str) -> Make:
    return lambda _: REAL / name


def kept(lines: list[str] | None = None, **record: object) -> Make:
    """A run of ours with its record."""
    return lambda folder: kept_run(folder / "1", lines or step_log(), **record).parent


FLAGS = {
    **{"workload": "resnet50", "shape": {"image_size": 224}, "precision": "fp32", "batch_size": 8},
    **{"pipeline": [], "input": "tfrecord", "data": "data/embedded/tfrecord", "device": "cuda"},
    **{"devices_per_node": 2, "compile": False, "proof": False},
}
"""What a trainer of ours says about itself."""


def said(framework: str = "torch 2.13.0", compute: str | None = None, **flags: object) -> Make:
    """A log of a trainer that was given some flags, without a record.

    Args:
        compute: the data type in which it says that it computes.
    """
    start, *rest = step_log()
    says = [event("configuration", FLAGS | flags), event("framework", framework)]
    if compute:
        says.append(event("precision", {"compute": compute, "weights": "float32"}))
    text = "".join(f"{line}\n" for line in [start, *says, *rest])
    return lambda folder: log_in(folder, text, "1n2g/train.log").parents[1]


def mlperf(platform: str = "x", step: float = 0.25, **says: object) -> Make:
    """An MLPerf log of two nodes of two devices, whose lines name its benchmark and platform."""
    told = {"submission_benchmark": "resnet", "submission_platform": platform} | says
    batch = mlperf_lines.event("global_batch_size", 32)
    steps = [
        mlperf_lines.tracked(20 * n, int(20000 * n * step), 32 / step, "step_num")
        for n in range(11)
    ]
    lines = [*mlperf_lines.says(**told), batch, *steps, mlperf_lines.STOP]
    text = "".join(f"{line}\n" for line in lines)
    return lambda folder: log_in(folder, text, f"{platform}.log").parent


def held_back(device: str, last: int) -> Make:
    metered = {"mean_watts": 1, "energy_joules": 1, "mean_utilisation_percent": 1}
    power = Power(**metered, mean_mhz=1410.0, throttled=0.5, first=20, last=last)
    load = Load(average=1, throttled=0.1, mhz=3100.0)
    return kept(run=RUN.model_copy(update={"device": device}), power=power, load=load)


def check_row(make: Make, folder: Path, source: dict, suite: dict, says: str | dict) -> None:
    """Check the only row of a source: how its refusal begins, or columns of what is measured."""
    [row] = rows_of({"path": str(make(folder)), **source}, **suite)
    if isinstance(says, str):
        assert (row["status"], row["throughput"]) == ("refused", None)
        assert row["reason"].startswith(says)
    else:
        assert (row["status"], row["reason"]) == ("ok", "")
        assert {name: row[name] for name in says} == says


TRAIN_LINES = "".join(f"{line}\n" for line in RESNET50.splitlines() if "train:" in line)
UNNAMED = RESNET50.replace("model = resnet50\n", "")
NAMED = {"topology": "2n8g", "system": "oneflow", "variant": "xla"}
CONFIGURED = {"system": "oneflow", "variant": "xla"}
TORCH, MINE, ONEFLOW = ({"system": name} for name in ("pytorch", "mine", "oneflow"))
BERT, PROGRAM, AT_8 = {"workload": "bert-base"}, {"topology": "1n1g"}, {"batch_size": 8}
MMENGINE, DLPERF = real("ran_mmengine.log"), real("oneflow_resnet50_2n8g_b128_fp32.log")
SUMS = said(accumulation=2, batch_size=4)
ADDED = {"variant": "accumulation-2", "global_batch": 16}
ON_2N2G, ON_1N3G = {"topology": "2n2g"}, {"topology": "1n3g"}
OF_MLPERF = {"topology": "2n2g", "batch_size_per_device": 8, "unconfirmed": "precision, world size"}
OPEN = {"unconfirmed": "workload, precision, world size"}


@pytest.mark.parametrize(
    ("make", "source", "suite", "says"),
    [
        # What no log says comes from the configuration, and what a log says is held to it.
        (given(TRAIN_LINES, "x.log"), {}, {}, "the global batch is not known: neither log, record"),
        (given(TRAIN_LINES, "x.log"), NAMED, {"batch_size": 128}, CONFIGURED),
        (given(RESNET50), NAMED, {"batch_size": 96}, "batch size per device is 128 by the log, 96"),
        (given(RESNET50), {}, BERT, "workload is resnet50 by the log, bert-base by the conf"),
        (given(UNNAMED), {}, BERT, "it counts images/s, which is not what bert-base counts"),
        # A log is of its format's system alone, or of any of its program's framework.
        (MMENGINE, PROGRAM | TORCH, AT_8, TORCH),
        (MMENGINE, PROGRAM | MINE, AT_8, MINE),
        (MMENGINE, PROGRAM | ONEFLOW, AT_8, "framework is torch by the log's format, oneflow by"),
        (DLPERF, TORCH, {}, "system is oneflow by the log's format, pytorch by the conf"),
        (DLPERF, MINE, {}, "system is oneflow by the log's format, mine by the configuration"),
        # The batch of a device follows from that of all and the topology, if they share it evenly;
        # a row marks what the configuration alone says, such as of a log of the open division.
        (mlperf(), ON_2N2G, {}, OF_MLPERF),
        (mlperf(), ON_1N3G, {}, "nothing says its batch size per device"),
        (mlperf(submission_division="open"), ON_2N2G, {}, OPEN),
        # A log of ours that adds up gradients is told apart, and its batches are counted.
        (SUMS, TORCH, {"batch_size": 4}, ADDED),
        (SUMS, TORCH | {"variant": "accumulation-2"}, {"batch_size": 4}, ADDED),
        (
            *(SUMS, TORCH, {"batch_size": 4, "accumulation": 4}),
            "gradient accumulation is 2 by the log, 4 by the configuration",
        ),
        # Variants that nobody names are those that the log says.
        (said(), TORCH, {"data": "embedded"}, {"variant": None, "topology": "1n2g"}),
        (said("torch 2", compile=True), TORCH, {}, {"variant": "compile"}),
        (said("torch 2", compile=True), {}, {}, {"variant": "compile"}),
        (said("tensorflow 2.0", compile=True), {"system": "tensorflow2"}, {}, {"variant": "xla"}),
        (said(compile=True, no_clip=True), TORCH, {}, {"variant": "compile+no-clip"}),
        (said(schedule="gpipe"), {"system": "torch-pipeline"}, {}, {"variant": "gpipe"}),
        (
            *(said("paddle 1.8", push_every=7), {"system": "paddle-fleet"}, {}),
            {"variant": "push-every-7"},
        ),
        (said(compute="float16"), {}, {}, "precision is fp32 by the log, fp16 by the log"),
        # How long anything held the devices back: by power in the window, and by load.
        (held_back("cuda", 120), {}, LIKE_OURS, {"throttled": 0.5, "mhz": 1410.0}),
        (held_back("cuda", 40), {}, LIKE_OURS, {"throttled": 0.1, "mhz": None}),
        (held_back("cpu", 120), {}, LIKE_OURS, {"throttled": 0.5, "mhz": 3100.0}),
    ],
)
def test_a_row_says_what_log_record_and_configuration_agree_on(tmp_path, make, source, suite, says):
    check_row(make, tmp_path, source, suite, says)


TWICE = [*step_log(iterations=60), *step_log(rate=50.0)]


@pytest.mark.parametrize(
    ("kept", "source", "suite", "says"),
    [
        (kept(), {}, {}, {"system": "pytorch", "topology": "1n2g", "batch_size_per_device": 8}),
        (kept(), {}, {"precision": "amp"}, "precision is fp32 by the run record, amp by the conf"),
        (kept(), {}, BERT | {"shape": {}}, "workload is resnet50 by the log, bert-base"),
        # Who leaves out the shape says the usual one.
        (kept(), {}, {"shape": {}}, "image size is 64 by the run record, 224 by the configuration"),
        (kept(), ONEFLOW, {}, "system is pytorch by the run record, oneflow by the configuration"),
        (kept(), {"variant": "compile"}, {}, "variant is none by the run record, compile by the"),
        (kept(TWICE), {}, {}, "2 runs are in one log; a run of ours writes one"),
    ],
)
def test_a_kept_run_is_what_its_record_says_and_what_the_suite_trains(
    tmp_path, kept, source, suite, says
):
    check_row(kept, tmp_path, source, LIKE_OURS | suite, says)


def test_a_kept_run_that_ended_badly_is_what_its_record_says(tmp_path):
    [row] = rows_of(kept(status="timeout", reason="no end after 9 s")(tmp_path), **LIKE_OURS)
    assert (row["status"], row["reason"]) == ("timeout", "no end after 9 s")


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
    source = {"system": "oneflow", "variant": "dynamic-loss-scale"}
    made = said(**{"framework": "oneflow 1.0", **flags})
    check_row(made, tmp_path, source, {"data": "embedded"}, reason)


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
    path = said(precision=asked, compute=compute)(tmp_path)
    for precision in (*taken.split(), *refused.split()):
        [row] = rows_of({"path": str(path)} | TORCH, precision=precision)
        assert (row["status"] == "ok") == (precision in taken.split()), precision


@pytest.mark.parametrize(
    ("name", "push_every", "variant"), [("own_time", 100, "geo"), ("together", None, "async")]
)
def test_a_variant_that_holds_another_ones_switch_is_told_from_it(name, push_every, variant):
    facts = Facts().add("the log", facts_of_flags({name: True, "push_every": push_every}))
    assert variant_of_switches(facts, "paddle-fleet") == variant


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (("oneflow", "jax"), "framework is oneflow by {one}, jax by {other}"),
        (('"cpu"', '"nvidia"'), "device is cpu by {one}, nvidia by {other}"),
        (("data/embedded", "data/other"), "data set is embedded by {one}, other by {other}"),
    ],
)
def test_repeats_of_a_cell_are_of_one_framework_device_and_data_set(tmp_path, change, reason):
    [log] = said("oneflow 1.0", device="cpu")(tmp_path).glob("*/*.log")
    text = log.read_text().replace("1003.", "1004.").replace(*change)
    log.with_name("zz.log").write_text(text)
    first, second = rows_of(tmp_path)
    assert (first["status"], second["status"]) == ("ok", "refused")
    assert second["reason"] == reason.format(one=first["log"], other=second["log"])


def test_logs_of_two_platforms_are_no_repeats_of_a_cell(tmp_path):
    mlperf("1xESC-N8-E11")(tmp_path)
    mlperf("1xESC8000-E11", 0.5)(tmp_path)
    first, second = rows_of({"path": str(tmp_path), "topology": "2n2g"})
    assert first["status"] == "ok"
    assert second["reason"].startswith("platform is 1xESC8000-E11 by ")


def test_a_file_too_large_for_a_record_is_none(tmp_path):
    record = kept()(tmp_path) / "1" / "run.json"
    with record.open("r+b") as stream:
        stream.truncate(30 << 30)  # a hole: the disk holds none of it
    [row] = rows_of(tmp_path, batch_size=8)
    assert "nothing says its batch size per device" in row["reason"]
    assert record not in files_of(tmp_path)


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
    context = gathered(tmp_path, log_in(tmp_path, "nothing\n", "no.log"))
    draw_suite(tmp_path / "m.csv", tmp_path / "s.csv", tmp_path / "theirs")
    nothing = draw_nothing("Speedup, suite theirs")
    assert "Nothing was measured" in " ".join(one.get_text() for one in nothing.findobj(Text))
    for text in (render_markdown(context, "."), render_html(context, tmp_path)):
        assert "1 log of others" in text
        assert "Logs in no cell" in text
        assert "no known format: no line is one that a format prints" in text


def on_gpus(*names: str) -> dict:
    """What a record says of a run of Llama on a node of such GPUs."""
    asked = {"workload": "llama3-8b", "system": "fsdp", "precision": "bf16", "device": "cuda"}
    asked["shape"] = load_workloads()["llama3-8b"].default_shape
    gpus = tuple(Gpu(name=name, uuid="", memory_bytes=1) for name in names)
    return {"run": small_run("1n2g", **asked), "host": HOST.model_copy(update={"gpus": gpus})}


@pytest.mark.parametrize(
    ("record", "columns"),
    [
        (on_gpus("NVIDIA H200", "NVIDIA H200"), {"data_sheet_rate": 989e12}),
        (on_gpus("NVIDIA H200", "NVIDIA B200"), {"data_sheet_rate": None}),
        ({"rank_seconds_alone": (0.1, 0.1, 0.12, 0.1)}, {"slowest_rank": 2}),
        ({"rank_seconds_alone": ()}, {"slowest_rank": None, "slowest_rank_behind": None}),
        ({"rank_seconds_alone": (None,) * 4}, {"slowest_rank": None, "slowest_rank_behind": None}),
    ],
)
def test_a_record_says_the_data_sheets_rate_the_memory_and_the_slowest_rank(record, columns):
    run = record.get("run", small_run("1n4g"))
    row = record_columns(record_of(**{"run": run} | record), Measurement("log", "mllog", "ok"))
    assert {name: row[name] for name in columns} == columns
    assert row["estimated_memory"] == estimated_memory(run)
    if columns.get("slowest_rank"):
        assert row["slowest_rank_behind"] == pytest.approx(0.2)
    if "run" in record:
        assert row["estimated_memory"] > 2**36
