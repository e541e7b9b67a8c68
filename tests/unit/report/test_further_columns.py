"""What only some reports have: a second unit, a loss that all share, columns on demand, marks."""

from io import StringIO

import pandas as pd
import pytest
from reperf.measuring.summary import summarise
from reperf.tables import SUMMARY, read_summary, table_of

from tests.unit.report.benchmarks import Benchmark

LOSSES = {"oneflow": 7.2345, "pytorch": 7.2346, "paddlepaddle": 7.3456}


def reading(benchmark: Benchmark, samples: str) -> Benchmark:
    """The benchmark with another input in every suite, of runs that say what loss they begin at."""
    suites = tuple(one.model_copy(update={"input": samples}) for one in benchmark.report.suites)
    report = benchmark.report.model_copy(update={"suites": suites})
    losses = benchmark.measurements["system"].map(LOSSES)
    told = benchmark.but(report=report).with_runs(start_loss=losses, input=samples)
    rows = summarise(told.measurements)
    return told.but(summary=read_summary(StringIO(table_of(rows, SUMMARY))))


def test_what_else_is_counted_has_a_column_of_its_own(big_benchmark, plain_pages):
    """Of a report on sentences, say, whose tokens are counted, too."""
    medians = big_benchmark.summary["throughput_median"]
    tokens = big_benchmark.with_cells(also_median=medians * 100, also_unit="tokens/s")
    html, markdown = tokens.pages
    assert html.count('<th scope="col" class="n">tokens/s</th>') == 2
    assert markdown.count(" | throughput | tokens/s | min | ") == 2
    for median in medians.dropna():
        assert f" | {100 * median:.2f} | " in markdown
    assert not any("tokens/s</th>" in text for text in plain_pages)


def test_a_system_that_starts_from_another_loss_says_so(big_benchmark, plain_pages):
    html, markdown = reading(big_benchmark, "synthetic").pages
    for text in html, markdown:
        assert "the loss of PaddlePaddle on 1n1g is 7.3456" in text
        assert "that of most others on the same batch 7.23455" in text
        assert "the loss of OneFlow" not in text
        assert "the loss of PyTorch" not in text
    assert html.count("starts elsewhere</span>") == 2 * 2  # in the panels and in the table
    assert markdown.count("| starts elsewhere") == 2
    assert not any("elsewhere" in text for text in plain_pages)


def test_systems_that_crop_images_at_random_start_from_other_losses(big_benchmark):
    cells = reading(big_benchmark, "records").context.cells
    assert not any(cell.stray for cell in cells)


def test_a_cell_beside_other_work_is_marked(big_benchmark, plain_pages):
    html, markdown = plain_pages
    beside = big_benchmark.summary.query("load > 0.05 and n > 0")
    assert set(beside["system"]) == {"paddlepaddle"}
    assert html.count('class="mark">not usable: 25.0 % other work</span>') == 0
    assert html.count('class="mark">machine busy</span>') == len(beside)
    assert markdown.count("| machine busy, bound by loader |") == len(beside)
    assert "1.0 % of the CPUs&#39; time before, 25.0 % of the CPUs&#39; time during" in html
    for text in plain_pages:
        assert text.count("Machine busy: other processes took more than 5 % of the") == 1


def test_a_repeat_that_ran_throttled_is_named(big_benchmark, plain_pages):
    its = big_benchmark.measurements["log"].str.contains("resnet50-fp32/oneflow/1n8g/3/")
    throttled = big_benchmark.with_runs(throttled=its.map({True: 0.12, False: 0.005}))
    for text in throttled.pages:
        assert (
            "held back OneFlow on 1n8g for more than 1 % of the time in repeat 3 (12.0 %)." in text
        )
        assert "1 ran throttled" in text.replace("<b>", "").replace("</b>", "")
    assert not any("hrottled" in text for text in plain_pages)


def test_columns_on_demand_are_those_of_which_something_is_known(big_benchmark, plain_pages):
    html = plain_pages[0]
    cell = big_benchmark.summary.query("n > 0").iloc[0]
    shown = {"each": f"{cell['per_device']:.1f}", "memory": "14.0 GiB", "hosts": cell["hosts"]}
    for name, value in shown.items():
        assert f'id="show-{name}"' in html
        assert f'more-{name}">{value}</td>' in html
    assert cell["key"].split(" ")[0] in html
    assert "show-energy" not in html


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        (
            {"speedup_low": 1.2, "speedup_high": 1.6},
            [
                ">scattered</span>",
                "1.20 to 1.60",
                "Scattered: of the speedups that single repeats give",
            ],
        ),
        (
            {"n": 3, "ci_level": float("nan")},
            ["A 95 % interval of the median needs at least 6 repeats"],
        ),
    ],
)
def test_numbers_that_say_too_little_say_so(big_benchmark, plain_pages, columns, words):
    html, markdown = big_benchmark.with_cells(**columns).pages
    assert [one for one in words if one not in html] == []
    assert words[-1] in markdown
    for text in plain_pages:
        assert [one for one in words if one in text] == []


def test_a_suite_beside_its_synthetic_twin_says_what_the_loader_costs(big_benchmark):
    real, twin = (suite for suite in big_benchmark.report.suites)
    twin = real.model_copy(update={"name": twin.name, "input": "synthetic"})
    report = big_benchmark.report.model_copy(update={"suites": (real, twin)})
    both = {}
    for name, column in ("summary", "throughput_median"), ("measurements", "throughput"):
        own = getattr(big_benchmark, name).query("suite == @real.name")
        other = own.assign(suite=twin.name, input="synthetic", **{column: own[column] * 1.25})
        both[name] = pd.concat([own, other], ignore_index=True)
    context = big_benchmark.but(report=report, **both).context
    costs = context.loader_costs(context.suites[0])
    assert len(costs) == len(context.suites[0].measured) > 0
    for cost in costs:
        assert cost.ratio.estimate == pytest.approx(0.8)
        assert cost.ratio.low < 0.8 < cost.ratio.high
    assert context.loader_costs(context.suites[1]) == []
    page = big_benchmark.but(report=report, **both).pages[0]
    drawn = page.partition("What the loader costs")[2].partition("</article>")[0]
    runs = sum(len(cost.cell.speeds) for cost in costs)
    assert drawn.count('<circle class="real"') == drawn.count('<circle class="synthetic"') == runs
    assert "What the loader costs" not in big_benchmark.pages[0]


def test_a_repeat_that_had_ended_well_before_says_that_it_was_chosen(big_benchmark, plain_pages):
    records = [
        record.model_copy(update={"ended_well_before": 2}) if record.run.repeat == 3 else record
        for record in big_benchmark.records
    ]
    for page in big_benchmark.but(records=records).pages:
        assert "Trained again: of OneFlow on 1n1g, repeat 3 had ended well 2 times before" in page
    assert not any("Trained again" in page for page in plain_pages)


def test_cells_whose_repeats_took_no_turns_say_so(big_benchmark, plain_pages):
    runs = big_benchmark.measurements
    later = runs["log"].str.contains("/oneflow/")
    days = runs["repeat"].map("2026-01-0{}T00:00:00.000+00:00".format)
    apart = big_benchmark.with_runs(date=days.where(~later, days.str.replace("-01-", "-02-")))
    for page in apart.pages:
        assert "One after the other: all repeats of OneFlow on 1n1g started after those of" in page
    for page in (*big_benchmark.with_runs(date=days).pages, *plain_pages):
        assert "One after the other" not in page


def test_runs_that_differ_make_no_one_thing(big_benchmark):
    runs = big_benchmark.measurements
    other = runs["key"].str.replace("lock ab", "lock cd")
    for page in big_benchmark.with_runs(key=runs["key"].mask(runs["repeat"] > 1, other)).pages:
        assert "of OneFlow on 1n1g differ in build, so that" in page


@pytest.mark.parametrize(
    ("other", "what"),
    [
        (lambda record: {"inherited": {"OMP_PROC_BIND": "true"}}, "OMP_PROC_BIND"),
        (
            lambda record: {"host": record.host.model_copy(update={"cores": 3})},
            "how many CPUs they may use",
        ),
        (
            lambda record: {
                "host": record.host.model_copy(update={"kernel": "6.2", "driver": "9"})
            },
            "operating system, GPU driver",
        ),
    ],
)
def test_what_runs_differ_in_beside_their_keys_is_told_by_its_name(big_benchmark, other, what):
    records = [
        record.model_copy(update=other(record)) if record.run.repeat > 1 else record
        for record in big_benchmark.records
    ]
    for page in big_benchmark.but(records=records).pages:
        shown = page.replace("\\_", "_")  # as Markdown has it
        assert f"of OneFlow on 1n1g differ in {what}, so that they are no repeats" in shown
    assert not any("differ in" in page for page in big_benchmark.pages)
