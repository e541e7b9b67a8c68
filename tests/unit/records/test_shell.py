"""Variables of the shell: which are recorded, and which make a run another thing."""

from reperf.records.cell_key import differing, key_of
from reperf.records.run_record import RunRecord
from reperf.records.shell import differing_variables, of_repeats, read_variables

from tests.helpers.run_records import record_of, small_run

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


def given(**variables: str) -> RunRecord:
    return record_of(small_run(), inherited=variables)


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
