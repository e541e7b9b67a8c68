"""The published facts, the tables made of them and the contradictions in them."""

import tempfile
from decimal import ROUND_HALF_EVEN, Decimal
from fractions import Fraction
from pathlib import Path
from statistics import median

import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from reperf.errors import ReperfError
from reperf.layout import PUBLISHED
from reperf.printed import ABSENT, published_speedup, speedup_over
from reperf.published import discrepancies, load_tables, published_for
from reperf.published.definitions import Series, load_definitions
from reperf.published.discrepancies import find_discrepancies
from reperf.published.numbers import published_numbers, published_repeats, read_facts
from reperf.published.rebuilt import build_table, speedup
from reperf.systems import ROOT, load_systems

TABLES = {table.id: table for table in load_tables()}
DLPERF = [name for name in TABLES if name.startswith("dlperf-")]


# The facts


def documented(page, header):
    """The rows of the table of a page whose header begins so."""
    table = page.read_text(encoding="utf-8").partition(f"\n| {header}")[2].partition("\n\n")[0]
    return [[part.strip() for part in row.strip("|").split("|")] for row in table.splitlines()[2:]]


@pytest.mark.parametrize(
    ("file", "metric", "rows", "oom", "total"),
    documented(PUBLISHED / "README.md", "file | metric | rows"),
)
def test_no_published_number_is_lost(file, metric, rows, oom, total):
    if file == "repeats.csv":
        counted = published_repeats()["throughput"]
    elif metric == "speedup_published":
        counted = published_numbers()[metric].dropna()
    else:
        facts = published_numbers()
        facts = facts if metric == "all" else facts[facts["metric"] == metric]
        assert (facts["status"] == "oom").sum() == int(oom)
        counted = facts["value"]
    assert len(counted) == int(rows)
    assert sum(counted.dropna()) == Decimal(total)


def test_every_number_has_a_source_and_a_unit_and_is_missing_only_where_memory_was_short():
    numbers = published_numbers()
    for facts in (numbers, published_repeats()):
        assert (facts["source_doc"] != "").all()
    assert (numbers["unit"] != "").all()
    assert (numbers["value"].isna() == (numbers["status"] == "oom")).all()


# The tables


def test_the_six_tables_of_the_report_come_first():
    of_resnet = ["resnet50-fp32-b128", "resnet50-amp-b256"]
    of_bert = [
        f"bert-base-{precision}" for precision in ("fp32-b32", "fp32-max", "amp-b64", "amp-max")
    ]
    assert list(TABLES)[:6] == DLPERF == [f"dlperf-{name}" for name in of_resnet + of_bert]


# Typed from the reports, a line of each of DLPerf's tables and a few cells more.
PRINTED = [
    ("dlperf-resnet50-fp32-b128", 32, {"OneFlow": 12411.97, "NGC MXNet": 11331.93}),
    ("dlperf-resnet50-fp32-b128", 32, {"NGC TensorFlow 1.x": 9514.64, "NGC PyTorch": 10917.09}),
    ("dlperf-resnet50-fp32-b128", 32, {"MXNet": 9579.74, "TensorFlow 2.x": 9418.44}),
    ("dlperf-resnet50-fp32-b128", 32, {"PyTorch": 10021.29, "PaddlePaddle": 9348.17}),
    ("dlperf-resnet50-amp-b256", 32, {"OneFlow": 33141.02}),
    ("dlperf-resnet50-amp-b256", 8, {"NGC TensorFlow 1.x, XLA, batch 224": 8588.45}),
    ("dlperf-resnet50-amp-b256", 8, {"NGC TensorFlow 1.x, batch 224": 6903.42}),
    ("dlperf-resnet50-amp-b256", 1, {"NGC PyTorch": 802.9}),
    ("dlperf-resnet50-amp-b256", 16, {"PaddlePaddle, DALI, batch 196": 6018.46}),
    ("dlperf-bert-base-fp32-b32", 8, {"OneFlow, without clipping": 1194.48}),
    ("dlperf-bert-base-fp32-b32", 16, {"MXNet, without clipping": 1845.65}),
    ("dlperf-bert-base-fp32-max", 1, {"OneFlow, batch 96": 156.02}),
    ("dlperf-bert-base-fp32-max", 32, {"MXNet, without clipping, batch 64": 4340.89}),
    ("dlperf-bert-base-amp-b64", 16, {"NGC TensorFlow 1.x": 2653.74}),
    ("dlperf-bert-base-amp-b64", 1, {"NGC TensorFlow 1.x, XLA": 422.53}),
    ("dlperf-bert-base-amp-max", 32, {"NGC TensorFlow 1.x, batch 64": 5189.07}),
    ("dlperf-bert-base-amp-max", 32, {"OneFlow, without clipping, batch 160": 17210.63}),
    ("oneflow-resnet50-amp-dynamic-loss-scale", 32, {"OneFlow, dynamic loss scale": 31958.78}),
    ("fleetx-resnet50-collective", 8, {"PaddlePaddle 1.6": 2255}),
    ("fleetx-transformer-collective", 32, {"TensorFlow 1.12 with Horovod": 51.52}),
]


@pytest.mark.parametrize(("table", "devices", "printed"), PRINTED)
def test_a_table_shows_the_numbers_that_its_report_prints(table, devices, printed):
    line = TABLES[table].wide().set_index("devices").loc[devices]
    assert {series: line[series] for series in printed} == printed


@pytest.mark.parametrize("name", DLPERF)
def test_every_cell_of_the_reports_tables_is_there(name):
    wide = TABLES[name].wide()
    assert wide["nodes"].tolist() == [1, 1, 2, 4]
    assert wide["devices"].tolist() == [1, 8, 16, 32]
    assert wide.notna().all(axis=None)
    assert TABLES[name].unit == ("images/s" if "resnet50" in name else "sentences/s")
    assert set(TABLES[name].cells["baseline"]) == {"1n1g"}
    assert TABLES[name].has_speedup


def test_columns_stand_in_the_reports_order():
    assert TABLES["dlperf-resnet50-amp-b256"].wide().columns.tolist() == [
        *("nodes", "devices", "OneFlow", "NGC MXNet"),
        *("NGC TensorFlow 1.x, XLA, batch 224", "NGC TensorFlow 1.x, batch 224"),
        *("NGC PyTorch", "MXNet", "TensorFlow 2.x", "PaddlePaddle, DALI, batch 196"),
    ]


def test_every_series_is_of_a_system_of_ours_and_of_its_variants():
    used = {system for name in DLPERF for system in TABLES[name].cells["system"]}
    assert used <= load_systems().keys()
    assert len(used) == 8
    fleetx = [name for name in TABLES if name.startswith("fleetx-")]
    cells = pd.concat(TABLES[name].cells.assign(table=name) for name in fleetx)
    ours = cells[cells["system"].isin(load_systems().keys())]
    assert all(
        one.variant in ("", *load_systems()[one.system].variants) for one in ours.itertuples()
    )
    others = cells.drop(ours.index)
    assert others["table"].str.endswith("-parameter-server").all()


def test_cells_know_the_spread_of_their_repeats_where_it_was_published():
    cells = TABLES["dlperf-resnet50-fp32-b128"].cells.set_index(["system", "topology"])
    known = cells.loc[("ngc-mxnet", "4n8g")]
    assert (known["throughput_min"], known["throughput_max"], known["n"]) == (11283.49, 11461.68, 7)
    # PyTorch's published repeats are of another loader, OneFlow's of an older version.
    for system in ("pytorch", "oneflow"):
        unknown = cells.loc[(system, "4n8g"), ["throughput_min", "throughput_max", "n"]]
        assert unknown.isna().all()


def test_speedups_are_those_of_the_reports_workbook():
    """The workbook behind the charts prints its speedups to four decimals."""
    numbers = published_numbers()
    sheet = numbers[numbers["source_doc"] == "reports/DLPerf_report_v1.0.xlsm#r50_fp32_bz128"]
    expected = {
        (row.framework, row.topology): float(row.speedup_published) for row in sheet.itertuples()
    }
    cells = TABLES["dlperf-resnet50-fp32-b128"].cells
    assert len(cells) == len(expected) == 32
    for cell in cells.itertuples():
        assert cell.speedup == pytest.approx(expected[cell.series, cell.topology], abs=0.00501)


def test_a_series_that_begins_at_eight_devices_has_its_speedup_over_those():
    cells = TABLES["fleetx-bert-large-collective"].cells.set_index(["series", "topology"])
    assert set(cells["baseline"]) == {"1n8g"}
    assert cells.loc[("PaddlePaddle 1.6", "4n8g"), "speedup"] == 3.70  # 78.48 / 21.22
    assert cells.loc[("TensorFlow 1.12 with Horovod", "1n8g"), "speedup"] == 1.0
    assert speedup_over(cells.loc[("PaddlePaddle 1.6", "4n8g")]) == "3.70 over 1n8g"
    assert published_speedup(cells.loc[("PaddlePaddle 1.6", "4n8g")]) == ABSENT


def test_a_table_shows_the_speedups_that_its_report_prints_and_no_others():
    printed = TABLES["oneflow-resnet50-amp-dynamic-loss-scale"].wide()
    assert printed.columns.tolist()[2:] == [
        "OneFlow, dynamic loss scale",
        "OneFlow, dynamic loss scale: speedup",
    ]
    assert printed.iloc[:, 3].tolist() == [1.00, 7.12, 12.08, 22.14]
    columns = {name: " ".join(map(str, table.wide().columns)) for name, table in TABLES.items()}
    with_speedups = [name for name in columns if ": speedup" in columns[name]]
    assert with_speedups == ["oneflow-resnet50-amp-dynamic-loss-scale"]


def test_every_table_names_a_document_that_anyone_can_find():
    for table in load_tables():
        assert "seed" not in table.source
        assert table.source in set(published_numbers()["source_doc"])
    assert "Oneflow-Inc/DLPerf" in TABLES["dlperf-resnet50-fp32-b128"].source
    assert "PaddlePaddle/FleetX" in TABLES["fleetx-resnet50-collective"].source


def test_parameter_servers_count_nodes_alone_and_have_no_speedup():
    wide = TABLES["fleetx-word2vec-parameter-server"].wide()
    assert wide.columns.tolist()[0] == "nodes"
    assert wide["nodes"].tolist() == [4, 8, 16, 32]
    assert wide["PaddlePaddle, geo-SGD"].tolist() == [5072.56, 9424.42, 17445.44, 33685.12]
    servers = [table for name, table in TABLES.items() if name.endswith("-parameter-server")]
    assert servers
    assert not any(table.has_speedup for table in servers)
    assert TABLES["fleetx-resnet50-collective"].has_speedup


def test_tables_without_throughput_show_each_metric_with_its_unit():
    pipedream = TABLES["pipedream-epoch-time"]
    assert pipedream.unit is None
    assert pipedream.wide().columns.tolist()[1:] == [
        "epoch 0 time (s)",
        "epoch 1 time (s)",
        "GPU memory (MiB)",
    ]
    assert pipedream.wide().iloc[0, 1:].tolist() == [151.468, 144.396, 4679]
    ssp = TABLES["oneflow-ssp-epoch-time"].wide().set_index("series")
    assert pd.isna(ssp.loc["OneFlow, SSP with 2 stages, weights 1:30", "epoch time (s)"])
    assert ssp.loc["OneFlow, SSP with 1 stage", "epoch time (s)"] == 287.0098


def test_a_series_that_no_number_belongs_to_is_refused():
    definitions = load_definitions()
    wrong = definitions.tables[0].model_copy(update={"series": (Series(framework="Caffe"),)})
    with pytest.raises(ReperfError, match=r"dlperf-resnet50-fp32-b128: no published number.*Caffe"):
        build_table(wrong, definitions)


# The cells that stand beside measured ones


def test_published_cells_are_found_by_shape():
    cells = published_for("resnet50", "fp32", 128)
    assert len(cells) == 32
    assert set(cells["table"]) == {"dlperf-resnet50-fp32-b128"}
    assert published_for("resnet50", "amp", 224)["system"].unique() == ["ngc-tensorflow1"]
    assert published_for("resnet50", "fp32", 8).empty
    # A cell of two tables is given once.
    both = published_for("bert-base", "amp", 64)
    assert len(both) == len(both.drop_duplicates(["system", "variant", "topology"])) == 28


# The contradictions


def test_the_contradictions_of_the_published_facts():
    found = discrepancies()
    kinds = [discrepancy.kind for discrepancy in found]
    page = documented(ROOT / "docs" / "published.md", "kind")
    assert {kind: kinds.count(kind) for kind in kinds} == {row[0]: int(row[-1]) for row in page}
    said = {(item.kind, *item.values) for item in found}
    assert {
        ("speedup", "27.33", "27.2314"),
        ("speedup", "10.2", "10.2772"),
        ("speedup", "29.75", "29.7382"),
        ("value", "11331.93", "11233.92"),
        ("value", "1194.48", "1234.65"),
        ("median", "3089.74", "2478.59"),
        ("median", "985.10", "986.11"),
        ("median", "246.55", "245.92"),
    } <= said


def test_a_contradiction_reads_as_one_line_and_all_come_in_the_same_order_every_time():
    lines = [str(discrepancy) for discrepancy in discrepancies()]
    assert (
        "MXNet 1.6.0, w/o clip, bert_base, amp, batch 128, 4n8g: "
        "the speedup does not follow from the throughputs: "
        "27.33 (MxNet/BERT/README.md); 27.2314 (14822.31 / 544.31)"
    ) in lines
    assert not any("\n" in line for line in lines)
    assert lines == [str(discrepancy) for discrepancy in discrepancies()]


NUMBER = {
    "source_doc": "report",
    "framework": "MXNet",
    "variant": "",
    "framework_version": "1.6.0",
    "model": "resnet50_v1.5",
    "precision": "fp32",
    "batch_size_per_device": 128,
    "metric": "throughput",
    "unit": "images/s",
    "status": "ok",
    "speedup_published": "",
    "note": "",
}
ONE = {"num_nodes": 1, "devices_per_node": 1, "num_devices": 1}
EIGHT = {"num_nodes": 1, "devices_per_node": 8, "num_devices": 8}


def number(shape, value, **other):
    return NUMBER | shape | {"value": value} | other


def repeats_of(shape, throughputs, median_published="", **other):
    same = {name: NUMBER[name] for name in ("source_doc", "framework", "variant", "model")}
    same |= {"list": "", "precision": "fp32", "batch_size_per_device": 128} | shape | other
    return [
        same | {"repeat": k, "throughput": throughput, "median_published": median_published}
        for k, throughput in enumerate(throughputs, start=1)
    ]


def find(numbers, repeats=()):
    """The contradictions of facts that were written as csv and read again."""
    with tempfile.TemporaryDirectory() as folder:
        rows = {
            "numbers": numbers,
            # A document that contradicts nothing, for the columns.
            "repeats": [*repeats, *repeats_of(ONE, ["1.00"], source_doc="elsewhere")],
        }
        facts = {}
        for name, table in rows.items():
            path = Path(folder, f"{name}.csv")
            pd.DataFrame(table).to_csv(path, index=False)
            facts[name] = read_facts(path)
    return find_discrepancies(facts["numbers"], facts["repeats"])


BASE = number(ONE, "100.00")
BASE_ELSEWHERE = BASE | {"source_doc": "other"}
TOP = number(EIGHT, "750.00")
NGC = TOP | {"framework": "NGC MXNet"}
ODD = repeats_of(ONE, ["99.00", "100.00", "101.00"])
EVEN = repeats_of(ONE, ["99.00", "100.01", "100.02", "103.00"])
# What one document says beside another's, or beside what its numbers give: found.
CONTRADICTIONS = {
    "a speedup that does not follow": (
        ([BASE, TOP | {"speedup_published": "7.52"}], ()),
        ("speedup", ("7.52", "7.5000"), ("report", "750.00 / 100.00")),
    ),
    "a speedup that does not follow from another document's one device": (
        ([BASE_ELSEWHERE, TOP | {"speedup_published": "7.40"}], ()),
        ("speedup", ("7.40", "7.5000"), ("report", "750.00 / 100.00 of other")),
    ),
    "two documents that differ on a cell": (
        ([TOP, number(EIGHT, "750.01", source_doc="other")], ()),
        ("value", ("750.00", "750.01"), ("report", "other")),
    ),
    "a variant that goes unsaid, which is the same cell": (
        ([NGC, NGC | {"value": "751.00", "source_doc": "other", "variant": "DALI"}], ()),
        ("value", ("750.00", "751.00"), ("report", "other")),
    ),
    "a median that the repeats do not give": (
        ([number(ONE, "100.01")], ODD),
        ("median", ("100.01", "100.00"), ("report", "3 repeats")),
    ),
    "a median that no rounding of the middle repeats gives": (
        ([number(ONE, "100.03")], EVEN),
        ("median", ("100.03", "100.015"), ("report", "4 repeats")),
    ),
    "a median printed with its repeats": (
        ([number(EIGHT, "1.00")], repeats_of(ONE, ["99.00"], median_published="98.00")),
        ("median", ("98.00", "99.00"), ("report", "1 repeat")),
    ),
}
AGREEING = {
    "a speedup that follows": ([BASE, TOP | {"speedup_published": "7.5"}], ()),
    "one that follows from another document's one device": (
        [BASE_ELSEWHERE, TOP | {"speedup_published": "7.50"}],
        (),
    ),
    "one without one device, which is not judged": ([TOP | {"speedup_published": "1.00"}], ()),
    "fewer decimals": ([number(EIGHT, "750.12"), number(EIGHT, "750.125", source_doc="other")], ()),
    "a median that the repeats give": ([number(ONE, "100")], ODD),
    # The mean of two middle repeats may round either way.
    "one that is rounded down": ([number(ONE, "100.01")], EVEN),
    "one that is rounded up": ([number(ONE, "100.02")], EVEN),
    # 100.005 and 100.025 print as 100.00 and 100.02; their mean, 100.015, prints as 100.02.
    "one of what was rounded before": (
        [number(ONE, "100.02")],
        repeats_of(ONE, ["100.00", "100.02"]),
    ),
} | {
    f"another cell's number: {changes}": (
        [TOP, number(EIGHT, "7.00", source_doc="b") | changes],
        (),
    )
    for changes in (
        {"framework_version": "1.7.0"},
        {"variant": "DALI"},
        {"precision": "amp"},
        {"batch_size_per_device": 64},
        {"metric": "latency"},
        ONE,
    )
}


@pytest.mark.parametrize(("facts", "said"), CONTRADICTIONS.values(), ids=CONTRADICTIONS)
def test_a_contradiction_is_found_with_its_values_and_where_they_are_from(facts, said):
    (found,) = find(*facts)
    assert (found.kind, found.values, found.sources) == said


@pytest.mark.parametrize("facts", AGREEING.values(), ids=AGREEING)
def test_what_may_stand_beside_each_other_is_no_contradiction(facts):
    assert not find(*facts)


def test_equal_series_under_two_labels_are_found():
    report = [number(ONE, "100.00"), number(EIGHT, "750.00")]
    other = [row | {"source_doc": "other", "batch_size_per_device": 96} for row in report]
    (found,) = find(report + other)
    assert found.kind == "label"
    assert found.values == (
        "MXNet 1.6.0, resnet50_v1.5, fp32, batch 128",
        "MXNet 1.6.0, resnet50_v1.5, fp32, batch 96",
    )
    # One equal number is no series, and an empty version contradicts nothing.
    assert not find(report[:1] + other[:1])
    assert not find(report + [row | {"source_doc": "x", "framework_version": ""} for row in report])


# Rounding

measured = st.decimals(min_value=50, max_value=2000, places=3)


def rounded(exact, places):
    return exact.quantize(Decimal(1).scaleb(-places), ROUND_HALF_EVEN)


@given(throughput=measured, one_device=measured)
@example(throughput=Decimal(1125), one_device=Decimal(1000))
@example(throughput=Decimal(1135), one_device=Decimal(1000))
def test_speedups_are_the_nearest_hundredth_and_even_in_the_middle(throughput, one_device):
    exact = Fraction(throughput) / Fraction(one_device)
    # Python's own rounding of a fraction is exact and half to even.
    assert Fraction(speedup(throughput, one_device)) == round(exact, 2)


@settings(max_examples=60, deadline=None)
@given(
    one=st.lists(measured, min_size=1, max_size=6),
    eight=st.lists(measured, min_size=1, max_size=6),
    places=st.tuples(st.integers(1, 3), st.integers(1, 3)),
)
def test_documents_that_only_round_contradict_nothing(one, eight, places):
    """Two documents print the same measurements, rounded half to even, to different decimals."""
    base, top = Decimal(median(one)), Decimal(median(eight))
    numbers, repeats = [], []
    for document, decimals in zip(("report", "other"), places, strict=True):
        said = {"source_doc": document}
        numbers += [
            number(ONE, rounded(base, decimals), speedup_published="1.00", **said),
            number(EIGHT, rounded(top, decimals), speedup_published=rounded(top / base, 2), **said),
        ]
        for shape, throughputs in ((ONE, one), (EIGHT, eight)):
            listed = [rounded(throughput, decimals) for throughput in throughputs]
            repeats += repeats_of(shape, listed, **said)
    assert not find(numbers, repeats)
