"""The published facts, the tables made of them and the contradictions in them."""

from collections import Counter
from decimal import Decimal
from fractions import Fraction
from importlib.util import module_from_spec, spec_from_file_location

import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from reperf.errors import ReperfError
from reperf.layout import PUBLISHED, ROOT
from reperf.number_format import ABSENT, published_speedup, speedup_over
from reperf.published import (
    NUMBERS,
    REPEATS,
    PublishedTable,
    discrepancies,
    load_tables,
    published_for,
    read_facts,
    speedup,
)
from reperf.systems import load_systems

TABLES = {table.id: table for table in load_tables()}
DLPERF = [name for name in TABLES if name.startswith("dlperf-")]


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
        counted = read_facts(REPEATS)["throughput"]
    elif metric == "speedup_published":
        counted = read_facts(NUMBERS)[metric].dropna()
    else:
        facts = read_facts(NUMBERS)
        facts = facts if metric == "all" else facts[facts["metric"] == metric]
        assert (facts["status"] == "oom").sum() == int(oom)
        counted = facts["value"]
    assert len(counted) == int(rows)
    assert sum(counted.dropna()) == Decimal(total)


def test_every_number_has_a_source_and_a_unit_and_is_missing_only_where_memory_was_short():
    numbers = read_facts(NUMBERS)
    for facts in (numbers, read_facts(REPEATS)):
        assert (facts["source_doc"] != "").all()
    assert (numbers["unit"] != "").all()
    assert (numbers["value"].isna() == (numbers["status"] == "oom")).all()


# Typed from the reports: some of each of DLPerf's tables, and a few cells more.
PRINTED = [
    ("dlperf-resnet50-fp32-b128", 32, {"OneFlow": 12411.97, "NGC MXNet": 11331.93}),
    ("dlperf-resnet50-amp-b256", 32, {"OneFlow": 33141.02}),
    ("dlperf-resnet50-amp-b256", 8, {"NGC TensorFlow 1.x, XLA, batch 224": 8588.45}),
    ("dlperf-resnet50-amp-b256", 1, {"NGC PyTorch": 802.9}),
    ("dlperf-resnet50-amp-b256", 16, {"PaddlePaddle, DALI, batch 196": 6018.46}),
    ("dlperf-bert-base-fp32-b32", 8, {"OneFlow, without clipping": 1194.48}),
    ("dlperf-bert-base-fp32-b32", 16, {"MXNet, without clipping": 1845.65}),
    ("dlperf-bert-base-fp32-max", 1, {"OneFlow, batch 96": 156.02}),
    ("dlperf-bert-base-fp32-max", 32, {"MXNet, without clipping, batch 64": 4340.89}),
    ("dlperf-bert-base-amp-b64", 1, {"NGC TensorFlow 1.x, XLA": 422.53}),
    ("dlperf-bert-base-amp-max", 32, {"OneFlow, without clipping, batch 160": 17210.63}),
    ("oneflow-resnet50-amp-dynamic-loss-scale", 32, {"OneFlow, dynamic loss scale": 31958.78}),
    ("fleetx-resnet50-collective", 8, {"PaddlePaddle 1.6": 2255}),
    ("fleetx-transformer-collective", 32, {"TensorFlow 1.12 with Horovod": 51.52}),
]


@pytest.mark.parametrize(("table", "devices", "printed"), PRINTED)
def test_a_table_shows_the_numbers_that_its_report_prints(table, devices, printed):
    line = TABLES[table].wide().set_index("devices").loc[devices]
    assert {series: line[series] for series in printed} == printed


def test_the_six_tables_of_the_report_come_first_and_whole():
    of_bert = [
        f"bert-base-{precision}" for precision in ("fp32-b32", "fp32-max", "amp-b64", "amp-max")
    ]
    names = ["resnet50-fp32-b128", "resnet50-amp-b256", *of_bert]
    assert list(TABLES)[:6] == DLPERF == [f"dlperf-{name}" for name in names]
    for name in DLPERF:
        wide = TABLES[name].wide()
        assert wide["nodes"].tolist() == [1, 1, 2, 4]
        assert wide["devices"].tolist() == [1, 8, 16, 32]
        assert wide.notna().all(axis=None)
        assert TABLES[name].unit == ("images/s" if "resnet50" in name else "sentences/s")
        assert set(TABLES[name].cells["baseline"]) == {"1n1g"}
        assert TABLES[name].has_speedup
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
    numbers = read_facts(NUMBERS)
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
    last = cells.loc[("PaddlePaddle 1.6", "4n8g")]
    assert set(cells["baseline"]) == {"1n8g"}
    assert last["speedup"] == 3.70  # 78.48 / 21.22
    assert cells.loc[("TensorFlow 1.12 with Horovod", "1n8g"), "speedup"] == 1.0
    assert (speedup_over(last), published_speedup(last)) == ("3.70 over 1n8g", ABSENT)


def test_a_table_shows_the_speedups_that_its_report_prints_and_no_others():
    name, series = "oneflow-resnet50-amp-dynamic-loss-scale", "OneFlow, dynamic loss scale"
    printed = TABLES[name].wide()
    assert printed.columns.tolist()[2:] == [series, f"{series}: speedup"]
    assert printed.iloc[:, 3].tolist() == [1.00, 7.12, 12.08, 22.14]
    columns = {name: " ".join(map(str, table.wide().columns)) for name, table in TABLES.items()}
    assert [name for name in columns if ": speedup" in columns[name]] == [name]


def test_every_table_names_a_document_that_anyone_can_find():
    for table in load_tables():
        assert "seed" not in table.source
        assert table.source in set(read_facts(NUMBERS)["source_doc"])
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
    wrong = PublishedTable(**load_tables()[0].model_dump() | {"series": [{"framework": "Caffe"}]})
    with pytest.raises(ReperfError, match=r"dlperf-resnet50-fp32-b128: no published number.*Caffe"):
        assert wrong.cells


def test_published_cells_are_found_by_shape():
    cells = published_for("resnet50", "fp32", 128)
    assert len(cells) == 32
    assert set(cells["table"]) == {"dlperf-resnet50-fp32-b128"}
    assert published_for("resnet50", "amp", 224)["system"].unique() == ["ngc-tensorflow1"]
    assert published_for("resnet50", "fp32", 8).empty
    # A cell of two tables is given once.
    both = published_for("bert-base", "amp", 64)
    assert len(both) == len(both.drop_duplicates(["system", "variant", "topology"])) == 28


def test_the_contradictions_of_the_published_facts():
    page = documented(ROOT / "docs" / "published.md", "kind")
    kinds = Counter(discrepancy.kind for discrepancy in discrepancies())
    assert kinds == {row[0]: int(row[-1]) for row in page}
    assert (
        "MXNet 1.6.0, w/o clip, bert_base, amp, batch 128, 4n8g: "
        "the speedup does not follow from the throughputs: "
        "27.33 (MxNet/BERT/README.md); 27.2314 (14822.31 / 544.31)"
    ) in map(str, discrepancies())


def test_the_contradictions_that_the_report_reads_are_those_of_the_facts():
    path = PUBLISHED / "find_discrepancies.py"
    spec = spec_from_file_location(path.stem, path)
    program = module_from_spec(spec)
    spec.loader.exec_module(program)
    facts = read_facts(NUMBERS), read_facts(REPEATS)
    assert discrepancies() == program.find_discrepancies(*facts), f"{path} writes them anew"


measured = st.decimals(min_value=50, max_value=2000, places=3)


@given(throughput=measured, one_device=measured)
@example(throughput=Decimal(1125), one_device=Decimal(1000))
@example(throughput=Decimal(1135), one_device=Decimal(1000))
def test_speedups_are_the_nearest_hundredth_and_even_in_the_middle(throughput, one_device):
    exact = Fraction(throughput) / Fraction(one_device)
    # Python's own rounding of a fraction is exact and half to even.
    assert Fraction(speedup(throughput, one_device)) == round(exact, 2)
