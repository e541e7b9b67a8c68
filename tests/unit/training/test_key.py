"""A cell's key: equal for repeats of one thing, different for what is another thing."""

import pytest
from reperf.config import Parallel, Run, load_report
from reperf.config.engine import Container
from reperf.config.servers import Servers
from reperf.training.key import NO_PART, differing, key_of, short
from reperf.training.record import Environment, Gpu, Host, Image, RunRecord

from tests.helpers.small_benchmark import SMALL

RUN = load_report(SMALL).run("small", "pytorch", "1n1g", 1)
HOST = Host(
    hostname="here", cpu="AMD EPYC 7B13", cores=2, memory_bytes=1, os="Debian", kernel="6.1"
)
V100, H100 = (Gpu(name=name, uuid="", memory_bytes=1) for name in ("Tesla V100", "NVIDIA H100"))
IMAGE = Image(reference="a", digest=f"sha256:{'b' * 64}", engine="docker", engine_version="1")


def record(run: Run = RUN, host: Host = HOST, **environment: object) -> RunRecord:
    built = {"lock": "envs/pytorch.txt", "lock_sha256": "a" * 64, "python": "3.12", "packages": {}}
    return RunRecord(
        status="ok",
        run=run,
        attempt=1,
        command=(),
        variables={},
        environment=Environment(**built | environment),
        git_commit=None,
        git_dirty=None,
        host=host,
        started="",
        ended="",
        seconds=1,
        exit_code=0,
        log_sha256="",
    )


def changed(**values: object) -> Run:
    return RUN.model_copy(update=values)


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
    "container": Container(engine="docker", image="a"),
}


@pytest.mark.parametrize("field", Run.model_fields)
def test_all_that_decides_a_run_is_in_its_key_but_what_is_named(field):
    host = HOST.model_copy(update={"gpus": (V100,)})
    same = key_of(record(changed(**{field: OTHER[field]}), host)) == key_of(record(host=host))
    assert same == (field in NO_PART)


def test_device_and_build_are_in_it():
    on_gpus = changed(device="cuda")
    found = [
        key_of(record()),
        key_of(record(host=HOST.model_copy(update={"cpu": "another"}))),
        key_of(record(lock_sha256="c" * 64)),
        key_of(record(lock="", lock_sha256="", image=IMAGE)),
        key_of(record(lock="", lock_sha256="", image=IMAGE, overlay={"flax": "1"})),
        *(
            key_of(record(on_gpus, HOST.model_copy(update={"gpus": (gpu,)})))
            for gpu in (V100, H100)
        ),
    ]
    assert len({short(key) for key in found}) == len(found)
    assert differing([found[-1], found[-2]]) == ["device"]


def test_it_has_the_words_that_it_had():
    # Tables of years join on it: if this changes, VERSION must.
    assert key_of(record()) == (
        "1:7def1e4d27dd batch_size=2; build=lock aaaaaaaaaaaa; device=cpu, AMD EPYC 7B13; "
        "input=tfrecord; precision=fp32; shape=image_size:32; system=pytorch; threads=1; "
        "topology=1n1g; workload=resnet50"
    )


def test_what_nobody_names_has_none():
    assert key_of(record(changed(device="cuda"))) == ""
    assert key_of(record(host=HOST.model_copy(update={"cpu": ""}))) == ""
