"""The configuration: what it resolves to, and one line for each way to get it wrong."""

import json
import re
from pathlib import Path

import jsonschema
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from reperf.cli import main
from reperf.commands.config import SCHEMAS
from reperf.config import Cell, Entry, Report, load_report, topology_shape
from reperf.config.site import Hardware
from reperf.configfiles import merged
from reperf.errors import ReperfError
from reperf.layout import ROOT
from reperf.machine import resolve
from reperf.plans.run_plan import trainer_flags
from reperf.published import load_tables
from reperf.systems import load_systems
from reperf.text import printable
from reperf.validation import SchemaOfFile

from docs.make_tables import SECTIONS, configuration_page
from tests.helpers.refusal import refused_in_one_line

SUITE = {
    "name": "small",
    "workload": "resnet50",
    "precision": "fp32",
    "batch_size": 4,
    "systems": ["pytorch"],
}
SHIPPED = ("config.yaml", *sorted(f"reports/{file.name}" for file in (ROOT / "reports").iterdir()))


def suite(**changes: object) -> dict:
    """A configuration of one suite, with some of its keys changed."""
    return {"suites": [SUITE | changes]}


def report(**changes: object) -> dict:
    """A configuration with some of its top keys changed."""
    return {"suites": [SUITE]} | changes


def without(key: str, **changes: object) -> dict:
    """A configuration of one suite that lacks a key."""
    return {"suites": [{name: SUITE[name] for name in SUITE if name != key} | changes]}


def read(path: str) -> dict:
    return yaml.safe_load((ROOT / path).read_text(encoding="utf-8"))


def rows(section: str) -> list[tuple[dict, str]]:
    """The rows of refused.txt: pairs of keys and the message that refuses them."""
    text = Path(__file__).with_name("refused.txt").read_text(encoding="utf-8")
    part = text.partition(f"\n[{section}]\n")[2].partition("\n\n")[0]
    found = [row.partition(" =>") for row in part.replace("\n  ", " ").splitlines()]
    return [(yaml.safe_load(f"{{{keys}}}"), said.strip()) for keys, _, said in found]


# What YAML cannot hold. For all other places, docs/configuration.md says what is allowed; it is
# compared below.
FAULTS = [
    *((report(**changes), said) for changes, said in rows("report")),
    *((suite(**changes), f"suites.small{said}") for changes, said in rows("suite")),
    (report(repeats=10**5000), "repeats: got a number of thousands of digits; allowed: a whole"),
    (report(title="a" * 3000), f"title: got '{'a' * 119}...; allowed: up to 1000 characters"),
    (report(**{"a" * 300: 3}), f"{'a' * 120}...: unknown key; allowed: baseline, build, cluster, "),
    (report(data={"images": "a" * 300}), f"data.images: got '{'a' * 119}...; allowed: up to 4095"),
    (report(suites=[SUITE, SUITE]), "suites: small appears twice; allowed: each once"),
    (suite(name="Two Words"), "suites.Two Words.name: got 'Two Words'; allowed: lowercase letters"),
    (suite(name="a" * 300), f"suites.{'a' * 113}...: got '{'a' * 119}...; allowed: up to 100 char"),
    (without("systems"), "suites.small.systems: allowed: at least one item"),
    (
        without("batch_size", **{"from": "a.zip"}),
        "suites.small.systems: pytorch has no batch_size; allowed: its own or the suite's",
    ),
    ({}, "suites: is missing: one table and two plots each"),
    (None, "got nothing; allowed: a mapping of keys to values"),
]
# A key that is mistyped, misplaced, or lacks another key that it needs; or a mistyped value.
MEANT = [
    (without("precision", prec="fp32"), "; did you mean precision?"),
    *((report(**changes), words) for changes, words in rows("meant in a report")),
    *((suite(**changes), words) for changes, words in rows("meant in a suite")),
]


@pytest.mark.parametrize(("config", "words"), MEANT)
def test_a_mistake_is_answered_with_what_was_probably_meant(config, words):
    with refused_in_one_line("my.yaml: ") as refusal:
        load_report(config, "my.yaml")
    said = str(refusal.value)
    assert said.endswith(words) if words.startswith("; ") else words in said


@pytest.mark.parametrize(("config", "message"), FAULTS)
def test_each_fault_is_one_line_with_the_key_the_value_and_what_is_allowed(config, message):
    with refused_in_one_line(printable(f"my.yaml: {message}")) as refusal:
        load_report(config, "my.yaml")
    assert len(str(refusal.value)) < 500


SCALED = {"system": "mxnet", "variants": "dynamic-loss-scale"}


@pytest.mark.parametrize(
    "changes",
    [
        {"workload": "bert-base", "systems": [{"system": "oneflow", "variants": "no-clip"}]},
        {"precision": "amp", "systems": ["mxnet", SCALED]},
        {"systems": [{"system": "paddlepaddle", "variants": "dali"}]},
        {"from": {"path": "run_12:30:01.log", "variant": "$\\frac{$ of 2019"}},
    ],
)
def test_a_variant_stands_where_it_changes_something_and_any_may_name_the_logs_of_others(changes):
    assert load_report(suite(**changes)).suites


KEYS = st.sampled_from([*Report.model_fields, *SUITE, "variants", "warmup", "x\ny"]) | st.integers()
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 99) | st.floats() | st.text("1ng x\n", max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(KEYS, VALUES, max_size=4), st.dictionaries(KEYS, VALUES, max_size=4))
def test_no_configuration_fails_in_another_way(top, inner):
    try:
        load_report({"suites": [SUITE | inner]} | top)
    except ReperfError as refusal:
        assert len(str(refusal).splitlines()) == 1


@pytest.mark.parametrize("path", SHIPPED)
def test_a_shipped_configuration_passes_the_check_and_says_itself_again(path):
    first = load_report(read(path), path)
    assert load_report(first.model_dump(mode="json", by_alias=True)) == first


@pytest.mark.parametrize("name", SCHEMAS)
def test_the_schema_of_what_is_written_is_up_to_date(name, capsys):
    assert main(["config", "schema", name]) == 0
    text, schema = capsys.readouterr().out, ROOT / f"workflow/schemas/{name}.schema.json"
    said = f"run: reperf config schema {name} > {schema.relative_to(ROOT)}"
    assert text == schema.read_text(), said
    jsonschema.Draft202012Validator.check_schema(json.loads(text))


def test_the_schema_for_editors_is_named_in_every_file_and_refuses_what_the_check_refuses():
    path = ROOT / "workflow/schemas/config.schema.json"
    schema = json.loads(path.read_text())
    for name in (*SHIPPED, "site.yaml"):
        jsonschema.validate(read(name), schema)
        first = (ROOT / name).read_text().partition("\n")[0]
        assert ((ROOT / name).parent / first.partition("$schema=")[2]).resolve() == path
    for config in (report(repeats=0), suite(workload="vgg"), suite(batch=3), report(suites=[])):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(config, schema)


@pytest.mark.parametrize("name", ["dlperf", "modern", "fleetx"])
def test_a_report_and_the_sites_file_are_one_for_a_cluster(name):
    both = merged([ROOT / f"reports/{name}.yaml", ROOT / "site.yaml"])
    assert both == read(f"reports/{name}.yaml") | read("site.yaml")
    assert load_report(both).cluster


def test_the_page_on_the_configuration_is_up_to_date_and_explains_every_key():
    page = (ROOT / "docs/configuration.md").read_text(encoding="utf-8")
    assert configuration_page() == page, "run: python docs/make_tables.py"
    for model in (Report, *SECTIONS.values()):
        assert model.__doc__
        properties = model.model_json_schema(schema_generator=SchemaOfFile)["properties"]
        assert all(one.get("description") for one in properties.values()), model
    assert " |  |\n" not in page


def test_the_examples_of_environments_are_valid():
    page = (ROOT / "docs/environments.md").read_text(encoding="utf-8")
    examples = re.findall(r"^```yaml\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    assert len(examples) == 6
    for example in map(yaml.safe_load, examples):
        assert load_report({"suites": [SUITE]} | example, "environments.md").names_environments


def test_the_default_report_is_the_matrix_of_dlperf_v1():
    full = load_report(read("reports/dlperf.yaml"))
    assert {suite.workload for suite in full.suites} == {"resnet50", "bert-base"}
    assert sum(suite.input == "records" for suite in full.suites) == 6
    tables = [table for table in load_tables() if table.id.startswith("dlperf-")]
    published = {system for table in tables for system in table.cells["system"]}
    assert {entry.system for suite in full.suites for entry in suite.entries} == published
    assert full.topologies == ("1n1g", "1n8g", "2n8g", "4n8g")
    assert full.repeats == 7
    assert (full.window.first, full.window.last) == (20, 120)


@pytest.mark.parametrize("path", ["reports/dlperf.yaml", "reports/modern.yaml"])
def test_beside_each_suite_that_reads_is_its_twin_without_a_loader(path):
    suites = {suite.name: suite for suite in load_report(read(path)).suites}
    reading = [suite for suite in suites.values() if suite.input == "records"]
    assert len(suites) == 2 * len(reading)
    for suite in reading:
        twin, others = suites[f"{suite.name}-synthetic"], {"name", "input", "entries"}
        assert twin.model_dump(exclude=others) == suite.model_dump(exclude=others)
        # DALI does not read what is not read.
        trains, trains_too = (
            [(entry.system, entry.batch_size) for entry in one.entries] for one in (suite, twin)
        )
        assert trains == trains_too


def test_the_report_for_todays_gpus_has_both_16_bit_types_and_compiled_models():
    modern = load_report(read("reports/modern.yaml"))
    for suite in modern.suites:
        asked = suite.workload, suite.precision, "cuda"
        able = {name for name, one in load_systems().items() if one.why_not(*asked) is None}
        assert {entry.system for entry in suite.entries} == able
        if suite.precision == "amp":
            variants = {entry.variant for entry in suite.entries}
            assert variants >= {None, "xla", "compile"}
            assert "unpadded" not in variants  # by itself it takes PyTorch three times as long
    assert {suite.precision for suite in modern.suites} == {"amp", "bf16"}
    assert modern.model_copy(update={"device": "cuda"}).left_out() == ""


def cells_of(config: dict) -> list[Cell]:
    """The cells of a configuration's suite, on CPUs."""
    read = load_report(config | {"device": "cpu"})
    return list(read.cells(read.suites[0]))


def test_accumulation_of_a_suite_or_an_entry_is_in_the_entrys_name_and_in_its_runs():
    named = ["pytorch", {"system": "jax", "accumulation": 1}, "mxnet"]
    named.append({"system": "pytorch", "accumulation": 8, "variants": "compile"})
    asked = suite(systems=named, accumulation=4)
    read = load_report(asked)
    assert load_report(read.model_dump(mode="json", by_alias=True)) == read
    cells = {cell.runs[0].entry: cell for cell in cells_of(asked)}
    assert {name: cell.runs[0].accumulation for name, cell in cells.items()} == {
        "pytorch+accumulation-4": 4,
        "jax": 1,
        "mxnet+accumulation-4": 4,
        "pytorch+compile+accumulation-8": 8,
    }
    run = cells["pytorch+compile+accumulation-8"].runs[0]
    assert run.global_batch == run.batch_size * 8
    assert (run.variant, run.identity["variant"]) == ("compile", "compile+accumulation-8")
    assert "--accumulation 8" in " ".join(trainer_flags(run, load_systems()["pytorch"]))
    assert cells["mxnet+accumulation-4"].unsupported == "MXNet has no gradient accumulation"
    assert cells["pytorch+accumulation-4"].unsupported is None
    assert "accumulation" not in str(trainer_flags(cells["jax"].runs[0], load_systems()["jax"]))


def test_only_systems_that_read_image_folders_are_planned_with_them():
    cells = cells_of(suite(systems=sorted(load_systems()), input="folder"))
    why = {cell.runs[0].system: cell.unsupported for cell in cells}
    assert {name for name in why if why[name] is None} == {"jax", "pytorch", "paddlepaddle"}
    assert why["mxnet"] == "MXNet has no reader of image folders"


def test_a_system_that_trains_without_servers_is_not_planned_with_them():
    (cell,) = cells_of(suite(systems=[{"system": "pytorch", "servers": {}}]))
    assert cell.unsupported == "PyTorch has no parameter servers"


def test_servers_name_an_entry():
    servers = {"per_node": 2, "threads": 4}
    entry = {"system": "paddle-fleet", "servers": servers}
    (cell,) = cells_of(suite(workload="ctr", systems=[entry]))
    assert cell.unsupported is None
    run = cell.runs[0]
    assert (run.entry, run.servers.cpus, run.servers_in_all) == ("paddle-fleet+servers-2x4", 8, 2)
    assert run.identity["servers"] == "2 servers a node, 4 threads each"
    assert (run.world_size, run.global_batch) == (1, 4)


@pytest.mark.parametrize(
    ("variants", "name"),
    [
        (["no-clip", "compile"], "pytorch+compile+no-clip"),
        (("compile", "no-clip"), "pytorch+compile+no-clip"),
        ("compile", "pytorch+compile"),
        ([], "pytorch"),
    ],
)
def test_variants_are_part_of_a_name_which_their_order_does_not_change(variants, name):
    assert Entry(system="pytorch", variants=variants).id == name


def test_the_report_for_one_node_reads_the_users_images_once_they_are_named():
    text = (ROOT / "reports/one-node.yaml").read_text(encoding="utf-8")
    named = re.sub(r"^( *)# ( *(?:- )?\w+: ?)", r"\1\2", text, flags=re.MULTILINE)
    plain, whole = (load_report(yaml.safe_load(one)) for one in (text, named))
    assert [suite.input for suite in plain.suites] == ["synthetic", "synthetic"]
    assert [suite.input for suite in whole.suites] == ["synthetic", "synthetic", "records"]
    first, _, own = whole.suites
    kept = {"name", "input"}
    assert own.model_dump(exclude=kept) == first.model_dump(exclude=kept)
    assert whole.data_of(own).images == Path("/datasets/imagenet")


@pytest.mark.parametrize(
    ("systems", "entries"),
    [
        ("all", [Entry(system=name).id for name in load_systems()]),
        ("oneflow", ["oneflow"]),
        (["mxnet", {"system": "pytorch", "variants": "compile"}], ["mxnet", "pytorch+compile"]),
    ],
)
def test_systems_of_the_report_run_in_every_suite_that_runs_any(systems, entries):
    logs = {"name": "logs", "workload": "resnet50", "precision": "fp32", "from": "logs.zip"}
    given = load_report({"suites": [SUITE, logs], "systems": systems})
    assert [entry.id for entry in given.suite("small").entries] == entries
    assert not given.suite("logs").entries
    assert load_report(given.model_dump(mode="json", by_alias=True)) == given


def test_a_suite_alone_keeps_all_that_decides_its_runs():
    full = resolve(load_report(read("config.yaml")))
    for suite in full.suites:
        alone = full.alone(suite.name)
        again = load_report(alone.model_dump(mode="json", by_alias=True))
        assert again.runs(again.suites[0]) == full.runs(suite)


def test_a_suite_of_logs_alone_is_not_held_to_what_runs_would_print():
    odd = {"window": {"warmup": 15, "measured": 300}, "print_every": 40}
    logs = odd | {"systems": [], "from": "logs.zip"}
    [one] = load_report(suite(**logs)).suites
    assert one.window.last == 315
    for runs_too in (odd, odd | {"from": "logs.zip"}):
        with refused_in_one_line("my.yaml: suites.small: window: ends at iteration 315, after"):
            load_report(suite(**runs_too), "my.yaml")


def test_a_run_resolves_what_its_suite_and_entry_say():
    compiled = {"system": "pytorch", "variants": "compile", "batch_size": 8}
    threads = {"threads_per_device": 3, "loader_threads": 5}
    config = suite(systems=[compiled]) | {"repeats": 2, "seed": 5, "device": "cpu"} | threads
    run = load_report(config).run("small", "pytorch+compile", "1n1g", 2)
    assert (run.batch_size, run.global_batch) == (8, 8)
    assert (run.threads, run.loader_threads) == (3, 5)
    assert (run.seed, run.repeat, run.entry) == (6, 2, "pytorch+compile")
    assert (run.input, run.data) == ("tfrecord", "data/embedded/tfrecord")
    assert run.folder == Path("results/runs/small/pytorch+compile/1n1g/2")


@pytest.mark.parametrize(
    ("asked", "read_from"),
    [("records", "data/mine/tfrecord"), ("folder", "/photos"), ("synthetic", None)],
)
def test_input_decides_what_is_read(asked, read_from):
    (cell,) = cells_of(suite(input=asked) | {"data": {"name": "mine", "images": "/photos"}})
    assert cell.runs[0].data == read_from


def test_cells_come_in_the_order_of_the_table_with_what_cannot_run():
    asked = report(topologies=["1n1g", "2n4g"], repeats=3)
    cells = cells_of(asked | suite(systems=["mxnet", "pytorch"], accumulation=2))
    assert [(cell.runs[0].system, cell.runs[0].topology, len(cell.runs)) for cell in cells] == [
        *(("mxnet", "1n1g", 3), ("mxnet", "2n4g", 3)),
        *(("pytorch", "1n1g", 3), ("pytorch", "2n4g", 3)),
    ]
    assert [bool(cell.unsupported) for cell in cells] == [True, True, False, False]
    run = cells[1].runs[0]
    assert (run.nodes, run.devices_per_node, run.world_size) == (*topology_shape("2n4g"), 8)
    assert run.global_batch == 4 * 8 * 2


@pytest.mark.parametrize(
    ("measured", "every", "variants", "printed"),
    [
        (100, 20, "async", 2),
        (5000, 100, "async", 100),
        (1000, 50, "async", 10),  # it divides 50
        (40, 20, "async", 1),
        (100, 20, [], 20),
    ],
)
def test_trainers_that_keep_their_own_time_print_fifty_times_a_window_at_least(
    measured, every, variants, printed
):
    asked = suite(workload="ctr", systems=[{"system": "paddle-fleet", "variants": variants}])
    window = {"warmup": 0, "measured": measured}
    (cell,) = cells_of(asked | {"iterations": measured, "window": window, "print_every": every})
    assert cell.runs[0].print_every == printed


@pytest.mark.parametrize("model", sorted({Report, *SECTIONS.values()} - {Hardware}, key=str))
def test_each_key_has_an_example_that_is_allowed(model, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("hosts.txt").write_text("gpu1\ngpu2\n")
    schema = model.model_json_schema()
    for example in schema["examples"]:
        model.model_validate(example)
    shown = {key for example in schema["examples"] for key in example}
    written_by_reperf = {"other_hardware", "reproduces"}
    assert set(schema["properties"]) - shown <= {*SECTIONS, *written_by_reperf}
