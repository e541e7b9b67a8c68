"""A cell's key: equal for repeats of one thing, different for what is another thing."""

import pytest
from reperf.config import Parallel, Run
from reperf.config.parallelism import Servers
from reperf.config.site import Container, SiteEnvironment
from reperf.host import Environment, Gpu, Host, Image, Site
from reperf.records.cell_key import NO_PART, differing, key_of, short

from tests.helpers.run_records import HOST, record_of, small_run

V100, H100 = (
    HOST.model_copy(update={"gpus": (Gpu(name=name, uuid="", memory_bytes=1),)})
    for name in ("Tesla V100", "NVIDIA H100")
)
IMAGE = Image(reference="a", digest=f"sha256:{'b' * 64}", engine="docker", engine_version="1")
LOCK = {"lock": "envs/pytorch.txt", "lock_sha256": "a" * 64, "python": "3.12", "packages": {}}
SITE = Site(named="/sw/pytorch", executable="/sw/pytorch/bin/python", digest="d" * 64)
IN_SITE = {"lock": "", "lock_sha256": "", "site": SITE}
IN_IMAGE = {"lock": "", "lock_sha256": "", "image": IMAGE}


def key(host: Host = HOST, build: dict | None = None, **changes: object) -> str:
    built = Environment(**LOCK | (build or {}))
    return key_of(record_of(small_run(**changes), host=host, environment=built))


# One other value for every field of a run: a new field has to be thought about here.
OTHER = {
    "suite": "other",
    "system": "jax",
    "variant": "compile",
    "workload": "vgg16",
    "precision": "amp",
    "batch_size": 4,
    "batch_multiple": 8,
    "topology": "2n8g",
    "repeat": 2,
    "iterations": 1000,
    "print_every": 10,
    "shape": {"image_size": 64},
    "accumulation": 2,
    "parallel": Parallel(pipeline=(7, 1)),
    "servers": Servers(),
    "together": True,
    "input": "synthetic",
    "data": "/elsewhere",
    "device": "cuda",
    "threads": 4,
    "shared_cpus": 2,
    "loader_threads": 3,
    "memory_limit": 2**30,
    "seed": 7,
    "lock": "volta",
    "lock_file": "nightly.txt",
    "container": Container(engine="docker", image="a"),
    "environment": SiteEnvironment(python="/sw/pytorch"),
    "label": "nightly",
}


@pytest.mark.parametrize("field", Run.model_fields)
def test_all_that_decides_a_run_is_in_its_key_but_what_is_named(field):
    changed = small_run().model_copy(update={field: OTHER[field]})
    same = key_of(record_of(changed, host=V100)) == key_of(record_of(small_run(), host=V100))
    assert same == (field in NO_PART)


def test_device_and_build_are_in_it():
    found = [
        key(),
        key(HOST.model_copy(update={"cpu": "another"})),
        key(build={"lock_sha256": "c" * 64}),
        key(build=IN_IMAGE),
        key(build=IN_IMAGE | {"overlay": {"flax": "1"}}),
        key(build=IN_SITE),
        key(V100, device="cuda"),
        key(H100, device="cuda"),
    ]
    assert len({short(one) for one in found}) == len(found)
    assert differing(found[-2:]) == ["device"]


def test_it_has_the_words_that_it_had():
    # Tables of years join on it: if this changes, VERSION must.
    assert key() == (
        "1:7def1e4d27dd batch_size=2; build=lock aaaaaaaaaaaa; device=cpu, AMD EPYC 7B13; "
        "input=tfrecord; precision=fp32; shape=image_size:32; system=pytorch; threads=1; "
        "topology=1n1g; workload=resnet50"
    )


def test_what_nobody_names_has_none():
    assert key(device="cuda") == key(HOST.model_copy(update={"cpu": ""})) == ""


def test_what_a_site_runs_before_launchers_and_where_its_data_lies_is_in_the_key():
    def key_with(**cluster: object) -> str:
        return key_of(record_of(small_run()).model_copy(update={"cluster": cluster}))

    variables = {"variables": {"NCCL_SOCKET_IFNAME": "ib0"}}
    assert key_with(**variables) == key_of(record_of(small_run()))
    one, other = (key_with(**variables, before=[line]) for line in ("module load a", "ls; ls"))
    assert one != other
    assert differing([one, other, key_with(stage="/scratch")]) == ["cluster"]
