"""The word `parallel`: in a configuration, in flags, and among ranks."""

import json

import pytest
from reperf.config import Parallel, load_report
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


def planned(topologies=("1n1g", "1n8g"), *, system="pytorch", variants=None, parallel, **more):
    entry = {"system": system, "variants": variants or [], "parallel": parallel}
    suite = {"name": "small", "workload": "alexnet", "precision": "fp32", "batch_size": 8}
    suite |= {"topologies": topologies, "input": "synthetic", "systems": [entry]}
    return load_report({"device": "cpu", "suites": [suite | more]})


def first_run(parallel):
    report = planned(parallel=parallel)
    cell = next(iter(report.cells(report.suites[0])))
    return cell.runs[0].model_copy(update={"topology": "1n8g"})


def test_a_cell_says_why_its_devices_cannot_share_the_work():
    report = planned(parallel=PIPELINE)
    one, eight = report.cells(report.suites[0])
    assert eight.unsupported == "PyTorch has no pipeline-parallel training of alexnet"
    assert one.runs[0].entry == "pytorch+stages-7-1+micro-4"
    assert one.runs[0].identity["parallel"] == "stages 7 + 1, micro-batches 4"
    needs = "stages 7 + 1, micro-batches 4 needs 8 devices, not 1"
    assert Parallel(**PIPELINE).why_not_on(1) == needs
    system = load_systems()["pytorch"]
    able = system.workloads["alexnet"].model_copy(update={"parallel": ("data", "pipeline")})
    mine = system.model_copy(update={"workloads": {"alexnet": able}})
    asked = {"parallel": ["pipeline"], "build": "lock"}
    assert mine.why_not("alexnet", "fp32", "cpu", pipeline=[7, 1], **asked) is None
    assert mine.why_not("alexnet", "fp32", "cpu", pipeline=[1] * 5, **asked) == (
        "alexnet is cut into 2 or 3 or 4 stages, not 5"
    )


@pytest.mark.parametrize(
    ("variant", "pipeline", "more"),
    [
        (None, [7, 1], {}),
        ("gpipe", [1, 1], {"micro_batches": 1}),
        ("interleaved", [2, 2], {"micro_batches": 4}),
    ],
)
def test_a_schedule_trains_by_its_pipelines(variant, pipeline, more):
    assert why_not("torch-pipeline", variant, pipeline, **more) is None


@pytest.mark.parametrize(
    ("variant", "pipeline", "more", "why"),
    [
        (None, [2, 3], {}, "stages 2 + 3; allowed: of each as many replicas as of the first, or"),
        ("zero-bubble", [2, 1], {}, "stages 2 + 1; allowed: as many replicas of each"),
        (None, [1, 1], {"micro_batches": 1}, "1 micro-batches; allowed: at least 2"),
        ("interleaved", [1, 1], {"micro_batches": 3}, "3 micro-batches; allowed: multiple of 2"),
        (None, [1, 1, 1], {"batch_size": 8}, "3 micro-batches of a batch of 8; allowed: what"),
        ("interleaved", [1, 1, 1], {}, "alexnet is cut into 2 or 3 or 4 stages, not 6"),
    ],
)
def test_a_schedule_says_why_it_cannot_train_by_a_pipeline(variant, pipeline, more, why):
    assert why in why_not("torch-pipeline", variant, pipeline, **more)


def why_not(system, variant, pipeline, **more):
    asked = {"parallel": ["pipeline"], "pipeline": pipeline, **more}
    return load_systems()[system].why_not("alexnet", "fp32", "cpu", variant, **asked)


def test_pipelines_have_limits_of_their_system():
    assert load_systems()["torch-pipeline"].why_not("alexnet", "fp32", "cpu") == (
        "PyTorch pipeline has no data-parallel training of alexnet"
    )
    assert why_not("pipedream", None, [7, 1]) is None
    why = why_not("pipedream", None, [7, 1], micro_batches=4)
    assert why == "PipeDream has no 4 micro-batches; allowed: none"


def test_a_batch_that_micro_batches_do_not_divide_is_a_cells_reason():
    three = {"pipeline": [1, 1, 1]}
    report = planned(["1n3g"], system="torch-pipeline", variants="gpipe", parallel=three)
    (cell,) = report.cells(report.suites[0])
    assert cell.unsupported == (
        "PyTorch pipeline, gpipe has no 3 micro-batches of a batch of 8; allowed: what divides it"
    )


@pytest.mark.parametrize(
    ("parallel", "readers"), [(PIPELINE, 7), ({"shard": 4}, 8), ({"tensor": 2, "shard": 2}, 4)]
)
def test_readers_are_counted_and_not_devices(parallel, readers):
    run = first_run(parallel)
    assert (run.readers, run.global_batch) == (readers, 8 * readers)
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


LLAMA = {"context": 32, "hidden": 128, "heads": 4, "key_heads": 2, "vocabulary": 1000}


@pytest.mark.parametrize(
    ("system", "variants", "parallel", "shape", "why"),
    [
        ("fsdp", None, {"shard": 2, "tensor": 2}, {}, None),
        ("jax", None, {"tensor": 4}, {}, "tensor is 4, key_heads is 2; allowed: what divides key_"),
        ("fsdp", None, {"tensor": 2}, {"context": 31}, "tensor is 2, context is 31"),
        ("fsdp", None, {"tensor": 4}, {"heads": 2}, "tensor is 4, heads is 2"),
        ("fsdp", ["compile", "recompute"], {"shard": 4}, {}, None),
        (
            "fsdp",
            ["compile", "recompute"],
            {"tensor": 2},
            {},
            "recompute and compile exclude each other under tensor-parallel training",
        ),
        (
            "pytorch",
            None,
            {"tensor": 2},
            {},
            "PyTorch has no tensor-parallel training of llama3-8b",
        ),
    ],
)
def test_layers_that_devices_cannot_share_are_a_cells_reason(
    system, variants, parallel, shape, why
):
    asked = {"workload": "llama3-8b", "shape": LLAMA | shape, "variants": variants}
    report = planned(["1n4g"], system=system, parallel=parallel, **asked)
    (cell,) = report.cells(report.suites[0])
    assert cell.unsupported is None if why is None else cell.unsupported.startswith(why)


def test_devices_that_share_a_model_accumulate_no_gradients():
    able, asked = load_systems()["jax"], ("llama3-8b", "fp32", "cpu")
    assert able.why_not(*asked, accumulation=2) is None
    assert able.why_not(*asked, accumulation=2, parallel=["tensor"]) == (
        "JAX has no gradient accumulation"
    )


def test_variants_that_never_go_together_are_refused():
    with pytest.raises(ReperfError, match="recompute and recompute-some exclude each other"):
        planned(
            system="fsdp",
            variants=["recompute", "recompute-some"],
            parallel={"shard": 8},
            workload="llama3-8b",
        )


@pytest.mark.parametrize(
    ("entry", "fitting", "other", "why"),
    [
        ({}, 8, 7, "7 record files for the 8 devices of 1n8g"),
        ({"parallel": PIPELINE}, 7, 8, "8 record files for the 7 readers of pytorch"),
    ],
)
def test_parts_of_data_divide_among_readers(entry, fitting, other, why):
    suite = {"name": "small", "workload": "alexnet", "precision": "fp32", "batch_size": 8}
    suite |= {"topologies": ["1n8g"], "systems": [{"system": "pytorch"} | entry]}
    asked = {"device": "cpu", "suites": [suite]}
    load_report(asked | {"data": {"name": "mine", "parts": fitting}})
    with pytest.raises(ReperfError, match=why):
        load_report(asked | {"data": {"name": "mine", "parts": other}})


def test_ranks_of_a_stage_follow_each_other():
    places = [stage_of(rank, (2, 1)) for rank in range(3)]
    assert [(place.stage, place.replica, place.is_last) for place in places] == [
        (0, 0, False),
        (0, 1, False),
        (1, 0, True),
    ]
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


def test_what_no_source_says_is_no_fact():
    assert "parallel" not in dict(facts_of_configuration({"workload": "alexnet"}))
    assert dict(facts_of_configuration({"pipeline": []}))["parallel"] == "data"


def test_a_variant_that_a_report_printed_and_nobody_can_install_says_why():
    why = load_systems()["oneflow"].why_not("resnet50", "fp32", "cpu", "ssp")
    assert why.startswith("SSP was a branch of OneFlow of 2020 and is in no release")
