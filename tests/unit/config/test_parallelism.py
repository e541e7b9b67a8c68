"""The word `parallel`: in a configuration, in flags, and among ranks."""

import json

import pytest
from reperf.config import Cell, Parallel, load_report
from reperf.errors import ReperfError
from reperf.logs.checks import Refused
from reperf.logs.configured import facts_of_configuration, facts_of_flags
from reperf.logs.facts import LOG, Facts
from reperf.measuring.found_logs import facts_of_run
from reperf.plans.run_plan import trainer_flags
from reperf.systems import load_systems
from trainers.contract.flags import parse_flags
from trainers.contract.recipe import cuts, stage_counts
from trainers.contract.stages import readers_of, shares, stage_of
from trainers.recipes import alexnet, resnet50, vgg16

PIPELINE = {"pipeline": [7, 1], "micro_batches": 4}
LLAMA = {"context": 32, "hidden": 128, "heads": 4, "key_heads": 2, "vocabulary": 1000}


def cell(topology: str, suite: dict | None = None, data: dict | None = None, **entry) -> Cell:
    """The cell of one entry on one topology of CPUs."""
    asked = {"name": "small", "workload": "alexnet", "precision": "fp32", "batch_size": 24}
    asked |= {"input": "synthetic", "topologies": [topology]} | (suite or {})
    asked |= {"systems": [{"system": "pytorch"} | entry]}
    report = load_report({"device": "cpu", "suites": [asked]} | ({"data": data} if data else {}))
    return next(report.cells(report.suites[0]))


PIPED = "torch-pipeline"


@pytest.mark.parametrize(
    ("system", "variants", "pipeline", "more", "why"),
    [
        ("pytorch", [], [7, 1], {}, "PyTorch has no pipeline-parallel training of alexnet"),
        ("pipedream", [], [7, 1], {}, None),
        ("pipedream", [], [7, 1], {"micro_batches": 4}, "has no 4 micro-batches; allowed: none"),
        (PIPED, [], [7, 1], {}, None),
        (PIPED, ["gpipe"], [1, 1], {"micro_batches": 1}, None),
        (PIPED, ["interleaved"], [2, 2], {"micro_batches": 4}, None),
        (PIPED, [], [2, 3], {}, "stages 2 + 3; allowed: of each as many replicas as of the first"),
        (PIPED, ["zero-bubble"], [2, 1], {}, "stages 2 + 1; allowed: as many replicas of each"),
        (PIPED, [], [1, 1], {"micro_batches": 1}, "1 micro-batches; allowed: at least 2"),
        (PIPED, ["interleaved"], [1, 1], {"micro_batches": 3}, "micro-batches; allowed: multiple"),
        (
            PIPED,
            ["gpipe"],
            [1, 1],
            {"micro_batches": 5},
            "no 5 micro-batches of a batch of 24; all",
        ),
        (PIPED, [], [1] * 5, {"micro_batches": 8}, "alexnet is cut into 2 or 3 or 4 stages, not 5"),
        (PIPED, ["interleaved"], [1] * 3, {}, "alexnet is cut into 2 or 3 or 4 stages, not 6"),
    ],
)
def test_a_cell_says_why_a_pipeline_cannot_train_it(system, variants, pipeline, more, why):
    topology = f"1n{sum(pipeline)}g"
    parallel = {"pipeline": pipeline} | more
    found = cell(topology, system=system, variants=variants, parallel=parallel).unsupported
    assert found is None if why is None else why in found


def test_a_pipeline_has_a_name_and_needs_its_devices_and_its_system_trains_no_other_way():
    run = cell("1n8g", parallel=PIPELINE).runs[0]
    assert run.entry == "pytorch+stages-7-1+micro-4"
    assert run.identity["parallel"] == "stages 7 + 1, micro-batches 4"
    needs = "stages 7 + 1, micro-batches 4 needs 8 devices, not 1"
    assert Parallel(**PIPELINE).why_not_on(1) == needs
    assert cell("1n1g", system=PIPED).unsupported == (
        "PyTorch pipeline has no data-parallel training of alexnet"
    )


@pytest.mark.parametrize(
    ("system", "variants", "parallel", "shape", "why"),
    [
        ("fsdp", [], {"shard": 2, "tensor": 2}, {}, None),
        ("jax", [], {"tensor": 4}, {}, "tensor is 4, key_heads is 2; allowed: what divides key_"),
        ("fsdp", [], {"tensor": 2}, {"context": 31}, "tensor is 2, context is 31"),
        ("fsdp", [], {"tensor": 4}, {"heads": 2}, "tensor is 4, heads is 2"),
        ("fsdp", ["compile", "recompute"], {"shard": 4}, {}, None),
        (
            "fsdp",
            ["compile", "recompute"],
            {"tensor": 2},
            {},
            "recompute and compile exclude each other under tensor-parallel training",
        ),
        ("pytorch", [], {"tensor": 2}, {}, "PyTorch has no tensor-parallel training of llama3-8b"),
    ],
)
def test_layers_that_devices_cannot_share_are_a_cells_reason(
    system, variants, parallel, shape, why
):
    asked = {"workload": "llama3-8b", "shape": LLAMA | shape}
    found = cell("1n4g", asked, system=system, variants=variants, parallel=parallel).unsupported
    assert found is None if why is None else found.startswith(why)


def test_devices_that_share_a_model_accumulate_no_gradients():
    able, asked = load_systems()["jax"], ("llama3-8b", "fp32", "cpu")
    assert able.why_not(*asked, accumulation=2) is None
    assert able.why_not(*asked, accumulation=2, parallel=["tensor"]) == (
        "JAX has no gradient accumulation"
    )


def test_variants_that_never_go_together_are_refused_and_one_of_2020_says_why_it_is_gone():
    both = ["recompute", "recompute-some"]
    with pytest.raises(ReperfError, match="recompute and recompute-some exclude each other"):
        cell("1n8g", {"workload": "llama3-8b"}, system="fsdp", variants=both, parallel={"shard": 8})
    why = load_systems()["oneflow"].why_not("resnet50", "fp32", "cpu", "ssp")
    assert why.startswith("SSP was a branch of OneFlow of 2020 and is in no release")


@pytest.mark.parametrize(
    ("entry", "fitting", "other", "why"),
    [
        ({}, 8, 7, "7 record files for the 8 devices of 1n8g"),
        ({"parallel": PIPELINE}, 7, 8, "8 record files for the 7 readers of pytorch"),
    ],
)
def test_parts_of_data_divide_among_readers(entry, fitting, other, why):
    cell("1n8g", {"input": "records"}, {"name": "mine", "parts": fitting}, **entry)
    with pytest.raises(ReperfError, match=why):
        cell("1n8g", {"input": "records"}, {"name": "mine", "parts": other}, **entry)


@pytest.mark.parametrize(
    ("parallel", "readers"), [(PIPELINE, 7), ({"shard": 4}, 8), ({"tensor": 2, "shard": 2}, 4)]
)
def test_readers_are_counted_and_not_devices(parallel, readers):
    run = cell("1n8g", parallel=parallel).runs[0]
    assert (run.readers, run.global_batch) == (readers, 24 * readers)
    words = trainer_flags(run, load_systems()["pytorch"])
    flags = parse_flags(alexnet, words[words.index("--workload") :])
    assert readers_of(flags, 8) == readers
    said = dict(facts_of_flags(json.loads(json.dumps(vars(flags)))))
    assert said["parallel"] == run.parallel.title
    assert ("parallel", run.parallel.title) in facts_of_run(run)
    with pytest.raises(ValueError, match="9 ranks for"):
        readers_of(flags, 9)


@pytest.mark.parametrize(
    ("devices", "parallel", "batch"),
    [(8, {"tensor": 2}, 16), (8, {"tensor": 2, "shard": 2}, 16), (8, {"shard": 4}, 32)],
)
def test_devices_that_share_each_layer_are_one_replica_in_a_log(devices, parallel, batch):
    """Else a log contradicts itself: its global batch, and its batch on all devices."""
    said = {"world_size": devices, "batch_size": 4, "pipeline": [], "tensor": None} | parallel
    facts = Facts().add(LOG, [("world_size", devices), ("global_batch", batch)])
    facts.add(LOG, facts_of_configuration(said)).settle()
    assert (facts.get("global_batch"), facts.batch_per_device) == (batch, 4)
    with pytest.raises(Refused, match="world size of 9 by the log is no multiple of 2"):
        Facts().add(LOG, [("world_size", 9), ("tensor", 2), ("batch_size", 4)])


def test_what_no_source_says_is_no_fact():
    assert "parallel" not in dict(facts_of_configuration({"workload": "alexnet"}))
    assert dict(facts_of_configuration({"pipeline": []}))["parallel"] == "data"


def test_ranks_of_a_stage_follow_each_other():
    places = [stage_of(rank, (2, 1)) for rank in range(3)]
    found = [(place.stage, place.replica, place.is_last) for place in places]
    assert found == [(0, 0, False), (0, 1, False), (1, 0, True)]
    assert [list(places[0].ranks_of(stage)) for stage in range(2)] == [[0, 1], [2]]


@pytest.mark.parametrize("recipe", [alexnet, vgg16, resnet50])
def test_each_cut_gives_every_stage_its_own_weights(recipe):
    names = list(recipe.weight_shapes({"image_size": 224}))
    for layout in [*stage_counts(recipe), *(one for one in recipe.CUTS if isinstance(one, tuple))]:
        pipeline = layout if isinstance(layout, tuple) else (1,) * layout
        parts = shares(names, cuts(recipe, pipeline))
        assert [name for part in parts for name in part] == names
        assert len(parts) == len(pipeline)
        # A stage that began with a layer which works in place would change what it is given.
        assert all(part[0].endswith(("conv.weight", ".weight")) for part in parts)
