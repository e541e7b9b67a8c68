"""A cell's key, and the variables of the shell in it: equal for repeats, different for all else."""

import pytest
from reperf.config import Parallel, Run
from reperf.config.parallelism import Servers
from reperf.config.site import Container, SiteEnvironment
from reperf.host import Environment, Gpu, Host, Image, Site
from reperf.records.cell_key import NO_PART, differing, key_of, short
from reperf.records.run_record import RunRecord
from reperf.records.shell import differing_variables, of_repeats, read_variables

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


def given(**variables: str) -> RunRecord:
    return record_of(small_run(), inherited=variables)


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


READ = (
    *("NCCL_P2P_DISABLE", "CUDA_LAUNCH_BLOCKING", "ONEDNN_MAX_CPU_ISA", "KMP_BLOCKTIME"),
    *("ATEN_CPU_CAPABILITY", "TF_ENABLE_ONEDNN_OPTS", "XLA_FLAGS", "FLAGS_allocator_strategy"),
    *("LD_PRELOAD", "MALLOC_ARENA_MAX", "GLIBC_TUNABLES", "TORCHINDUCTOR_MAX_AUTOTUNE"),
    *("AMD_SERIALIZE_KERNEL", "NVTE_FLASH_ATTN", "GLOG_v", "OPENCV_FOR_THREADS_NUM"),
    *("I_MPI_FABRICS", "CCL_ATL_TRANSPORT", "MKLDNN_VERBOSE", "PYTHONOPTIMIZE"),
)
NOT_READ = (
    "GOTO_NUM_THREADS",  # of Snakemake, which sets it to the cores of its call
    *("HOME", "MY_OMP_NUM_THREADS", "omp_num_threads", "LDFLAGS", "OMP_; x"),
    # Terraform's, and secrets.
    *("TF_VAR_password", "TF_CLI_CONFIG_FILE", "TF_LOG", "NVIDIA_API_KEY", "JAX_TOKEN"),
    *("PYTHON_SHA256", "PYTHON_COLORS"),
)


def test_what_a_library_reads_is_recorded_as_text_and_nothing_else_is():
    said = dict.fromkeys((*READ, *NOT_READ), "/a\udcff\n")
    assert read_variables(said) == dict.fromkeys(READ, "/a\\udcff\\n")


def test_a_variable_makes_another_key_and_a_place_does_not():
    plain, odd = given(), "--a; seed=1"
    assert key_of(given(CUDA_HOME="/usr", NCCL_SOCKET_IFNAME="eth0")) == key_of(plain)
    keys = [key_of(given(XLA_FLAGS=value)) for value in (odd, "--b")]
    assert len({key_of(plain), *keys}) == 3
    assert differing([key_of(plain), *keys]) == differing(keys) == ["variables"]


def test_repeats_need_not_share_places_and_devices_but_libraries():
    places = {"CUDA_HOME": "/usr", "CUDA_VISIBLE_DEVICES": "1", "GPU_DEVICE_ORDINAL": "1"}
    decides = {"LD_LIBRARY_PATH": "/opt", "XLA_FLAGS": "--a"}
    assert of_repeats(places | decides) == decides


def test_repeats_that_differ_in_a_variable_are_told_by_its_name():
    assert differing_variables([given(OMP_PROC_BIND="true")] * 2) == []
    differ = [given(OMP_PROC_BIND="true", LD_PRELOAD="/a"), given()]
    assert differing_variables(differ) == ["LD_PRELOAD", "OMP_PROC_BIND"]
    # What reperf sets counts, too, but not where a run's devices or rendezvous are.
    launched = {"OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": "0", "PYTHONPATH": "/a"}
    other = {"OMP_NUM_THREADS": "2", "CUDA_VISIBLE_DEVICES": "1", "PYTHONPATH": "/b"}
    records = [record_of(small_run(), variables=variables) for variables in (launched, other)]
    assert differing_variables(records) == ["OMP_NUM_THREADS"]
