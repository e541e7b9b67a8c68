"""What a report says of what is unusual; and that it says nothing of it where it is not."""

from dataclasses import replace
from io import StringIO

import pandas as pd
import pytest
from reperf.config import LogSource
from reperf.measuring.summary import summarise
from reperf.records.diagnosis import Diagnosis
from reperf.records.run_record import Power, RunRecord, SetRead
from reperf.tables import SUMMARY, read_summary, table_of

from tests.helpers.written_probes import diagnosis, with_host
from tests.unit.report.benchmarks import HOST, HOSTILE, Benchmark, texts_of

NAN = float("nan")
POWER = {"mean_watts": 250.0, "energy_joules": 7500.0, "mean_utilisation_percent": 98.0}


def with_losses(it: Benchmark, samples: str, **columns: object) -> Benchmark:
    """Runs that say what loss they begin at, on some input, and what follows from their rows."""
    losses = {"oneflow": 7.2345, "pytorch": 7.2346, "paddlepaddle": 7.3456}
    its = it.measurements["system"].map(losses)
    told = it.with_runs(start_loss=its, input=samples, **columns)
    cells = read_summary(StringIO(table_of(summarise(told.measurements), SUMMARY)))
    return told.but(summary=cells)


def odd_record(record: RunRecord) -> dict[str, object]:
    """The second and later repeats ran elsewhere, and read another format."""
    repeat, other = record.run.repeat, record.run.repeat > 1
    form, size = ("recordio", 1_400_000_000) if other else ("tfrecord", 1_481_234_567)
    system = {"cores": 3, "kernel": "6.2", "driver": "9"} if other else {}
    return {
        "run": record.run.model_copy(update={"input": form}),
        "data_set": SetRead(name="imagenet", counted="images", samples=12811, bytes=size),
        "host": HOST.model_copy(update=system),
        "inherited": {"OMP_PROC_BIND": "true"} if other else {},
        "ended_well_before": 2 * (repeat == 3),
        "nodes": ("node1", "node2"),
        "power": Power(**POWER) if other else Power(**POWER, nodes=("node1",), first=20, last=120),
    }


@pytest.fixture(scope="module")
def odd(big_benchmark) -> Benchmark:
    """A benchmark of which nearly everything is unusual."""
    runs = big_benchmark.measurements
    repeat, log, rate = runs["repeat"], runs["log"], runs["throughput"]
    days = repeat.map("2026-01-0{}T00:00:00.000+00:00".format)
    hosts = repeat.map(lambda number: "abcd"[number % 4])  # in turn, and d is slow
    slow = rate.mask(hosts == "d", rate * 0.95)
    it = with_losses(
        big_benchmark,
        "synthetic",
        throttled=log.str.contains("resnet50-fp32/oneflow/1n8g/3/").map({True: 0.12, False: 0.005}),
        date=days.mask(log.str.contains("/oneflow/"), days.str.replace("-01-", "-02-")),
        key=runs["key"].mask(repeat > 1, runs["key"].str.replace("lock ab", "lock cd")),
        hosts=hosts,
        throughput=slow.where(runs["num_nodes"] == 1, slow / 2),
    )
    return it.with_records(odd_record).but(
        archives={"archive/resnet50-fp32.zip": "ab" * 32},
        summary=it.summary.assign(
            **{"speedup_low": 1.2, "speedup_high": 1.6, "n": 3, "ci_level": NAN},
            also_median=it.summary["throughput_median"] * 100,
            also_unit="tokens/s",
            warnings="gap 3.7%",
        ),
    )


DIFFER = "OMP_PROC_BIND, how many CPUs they may use, operating system, GPU driver"
SAID = f"""
    the loss of PaddlePaddle on 1n1g is 7.3456, that of most others on the same batch 7.23455.
    2 started from another loss
    starts elsewhere
    held back OneFlow on 1n8g for more than 1 % of the time in repeat 3 (12.0 %).
    1 ran throttled
    with a gap in the window
    A gap in the window: in a run's log, one interval takes far more
    Scattered: of the speedups that single repeats give
    A 95 % interval of the median needs at least 6 repeats
    Trained again: of OneFlow on 1n1g, repeat 3 had ended well 2 times before
    One after the other: all repeats of OneFlow on 1n1g started after those of
    of OneFlow on 1n1g differ in build, {DIFFER}, so that
    A slow node: d is
    20 runs), and moves the medians of resnet50-fp32: OneFlow on 1n1g (
    on slow d
    tokens/s
    of imagenet (12,811 images; 1,400.0 MB as recordio, 1,481.2 MB as tfrecord), image size 224
    send the archive of their suite
    archive/resnet50-fp32.zip
    To check them:"""
ON_THE_PAGE = """
    1.20 to 1.60
    GPUs of node1, 1 of 2 nodes: 250.00 W on average, 7,500.00 J, 98.00 % busy, iterations 20 to 120
    GPUs of the first node, 1 of 2 nodes:
    over the whole run, its start included"""


def lines(text: str) -> list[str]:
    return [line.strip() for line in text.strip().splitlines()]


def test_what_is_unusual_is_said_and_nothing_of_it_where_it_is_not(odd, plain_pages):
    texts, plain = odd.texts, texts_of(plain_pages)
    for words in lines(SAID):
        assert [words in text for text in (*texts, *plain)] == [True, True, False, False], words
    for words in lines(ON_THE_PAGE):
        assert [words in text for text in (texts[0], plain[0])] == [True, False], words
    for page in texts:
        assert not any(f"the loss of {series}" in page for series in ("OneFlow", "PyTorch"))


def test_different_baselines_are_named_beside_each_speedup(big_benchmark):
    cells = big_benchmark.summary
    baselines = cells["baseline"].mask(cells["system"] == "oneflow", "1n8g")
    mixed = big_benchmark.with_cells(baseline=baselines.where(cells["speedup"].notna(), ""))
    html, markdown = mixed.pages
    for baseline in ("1n1g", "1n8g"):
        assert f" over {baseline} |" in markdown
        assert f"<small>over {baseline}</small>" in html


def crops(it: Benchmark, system: str, **changes: str) -> Benchmark:
    """Runs of another system in the place of OneFlow's."""
    names = ("measurements", "summary")
    tables = {name: getattr(it, name).replace("oneflow", system) for name in names}
    logs = it.measurements["log"].str.replace("/oneflow/", f"/{system}/")

    def change(record: RunRecord) -> dict[str, object]:
        other = {"system": system} | changes if record.run.system == "oneflow" else {}
        return {"run": record.run.model_copy(update=other)}

    return it.but(**tables).with_runs(log=list(logs)).with_records(change)


def fp32_alone(it: Benchmark) -> Benchmark:
    status = it.summary["status"]
    return it.with_cells(status=status.where(it.summary["precision"] == "fp32", "unsupported"))


LOGS = {"entries": (), "sources": (LogSource(path="theirs.zip"),)}
SMALL = {"shape": {"image_size": 64}}
FOREIGN = {"source": "logs.zip"}
NOTHING = dict.fromkeys(("throughput_median", "speedup", "efficiency"), NAN)
OURS = ("training run", "Every run trained", "A device is", "seed", "Frameworks")
BESIDE = ("Beside the published numbers",)


@pytest.mark.parametrize(
    ("change", "said", "never"),
    [
        (lambda it: it.with_records(odd_record), (f"{DIFFER}, so that they are no rep",), ()),
        (lambda it: with_losses(it, "records"), (), ("elsewhere",)),
        (lambda it: crops(it, "tensorflow2"), ("Crops differ",), ()),
        (lambda it: crops(it, "tensorflow2", input="synthetic"), (), ("Crops differ",)),
        (lambda it: crops(it, "mxnet"), (), ("Crops differ",)),
        (lambda it: it.with_suites(**SMALL), ("from record files, image size 64; 7",), BESIDE),
        (lambda it: it.with_suites(**LOGS), ("Logs from theirs.zip.",), ()),
        (lambda it: it.with_suites(**LOGS, **SMALL), ("theirs.zip, image size 64.",), ()),
        (lambda it: it.with_suites(input="synthetic"), ("Synthetic samples, so",), BESIDE),
        (lambda it: it.with_cells(unit="tokens/s"), (), BESIDE),
        (
            lambda it: it.with_runs(**FOREIGN).with_cells(**FOREIGN).but(records=[]),
            ("140 logs of others",),
            OURS,
        ),
        (
            lambda it: it.with_cells(status="unsupported", reason="not built yet", **NOTHING).but(
                records=[], measurements=it.measurements.iloc[:0]
            ),
            ("No cell could be tried.", "0 training runs", "Left out: OneFlow, "),
            (),
        ),
        (fp32_alone, ("No system of these suites can run: resnet50-amp.",), ("No cell could",)),
    ],
    ids=[
        *("no repeats", "random crops", "crops", "no crops", "equal crops", "small images", "logs"),
        *("logs of small images", "synthetic", "another unit", "logs of others", "nothing ran"),
        "FP32 ran",
    ],
)
def test_a_report_says_what_it_is_of(big_benchmark, change, said, never):
    for page in change(big_benchmark).texts:
        assert [words for words in said if words not in page] == []
        assert [words for words in never if words in page] == []


def test_what_the_doctor_found_stands_in_the_environment(big_benchmark, plain_pages):
    ill = big_benchmark.but(diagnosis=diagnosis(with_host(cpu=HOSTILE)))
    html, markdown = ill.pages
    for words in "2026-11-21 08:15:02 UTC, profile slurm", "0 errors, 1 warning", "all 4 nodes":
        assert words in html
    assert html.count("all-reduce of pytorch.cuda") == 2  # in a node, and over nodes
    assert html.count('<th scope="row">GPU clocks</th>') == 1
    assert "<script>alert" not in html + markdown
    assert "doctor" not in markdown.partition("## How it was measured")[0]
    assert "reperf doctor" not in plain_pages[0]
    again = Diagnosis.model_validate_json(ill.diagnosis.model_dump_json())
    assert ill.but(diagnosis=again).pages == (html, markdown)


def test_a_suite_beside_its_synthetic_twin_says_what_the_loader_costs(big_benchmark):
    real, twin = big_benchmark.report.suites
    twin = real.model_copy(update={"name": twin.name, "input": "synthetic"})
    both = {"report": big_benchmark.report.model_copy(update={"suites": (real, twin)})}
    for name, column in ("summary", "throughput_median"), ("measurements", "throughput"):
        own = getattr(big_benchmark, name).query("suite == @real.name")
        other = own.assign(suite=twin.name, input="synthetic", **{column: own[column] * 1.25})
        both[name] = pd.concat([own, other], ignore_index=True)
    twins = replace(big_benchmark, **both)
    context = twins.context
    costs = context.loader_costs(context.suites[0])
    assert len(costs) == len(context.suites[0].measured) > 0
    for cost in costs:
        assert cost.ratio.estimate == pytest.approx(0.8)
        assert cost.ratio.low < 0.8 < cost.ratio.high
    assert context.loader_costs(context.suites[1]) == []
    drawn = twins.pages[0].partition("What the loader costs")[2].partition("</article>")[0]
    runs = sum(len(cost.cell.speeds) for cost in costs)
    assert drawn.count('<circle class="real"') == drawn.count('<circle class="synthetic"') == runs


def test_one_run_alone_shows_no_spread(big_benchmark):
    columns = {f"throughput_{name}": 123.45 for name in ("median", "min", "max")}
    odd = {"n": 1, "throughput_iqr": NAN, "ci_level": NAN}
    lonely = big_benchmark.summary.assign(**columns, **odd).iloc[:1]
    html, markdown = big_benchmark.but(summary=lonely).pages
    # In the table and beside the published number, the median alone; the panel has a link to it.
    assert (html.count("<b>123.5</b>"), html.count(">123.5</a>")) == (2, 1)
    for name in ("least", "greatest", "iqr", "interval"):
        assert f'id="show-{name}"' not in html  # no column without a value
    assert "| 1 | 123.5 | \N{EN DASH} | \N{EN DASH} |" in markdown
