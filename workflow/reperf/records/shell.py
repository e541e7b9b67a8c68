"""The variables of a shell that change how a run trains.

They reach every rank of an environment's run, whoever set them; an image's ranks see none of them.
"""

import re
from collections.abc import Iterable, Mapping

from reperf.records.run_record import RunRecord
from reperf.text import printable

_READ = (
    # docs.nvidia.com: NCCL's "Environment Variables"; CUDA C++ Programming Guide, "CUDA Environment
    # Variables"; cuBLAS and cuDNN, their references; NVIDIA_TF32_OVERRIDE.
    *("NCCL_", "CUDA_", "CUBLAS_", "CUBLASLT_", "CUDNN_", "NVIDIA_"),
    # pytorch.org, "Torch Environment Variables"; c10 and ATen in their sources; Triton's README
    *("TORCH", "PYTORCH_", "ATEN_", "TRITON_"),
    # docs.jax.dev, "Configuration options"; openxla.org, "XLA flags"; tensorflow/core/util and
    # tsl/util in TensorFlow's source; mxnet.apache.org, "Environment Variables"; ps-lite's DMLC_
    *("JAX_", "XLA_", "LIBTPU_", "TF_", "KERAS_", "MXNET_", "DMLC_"),
    # NVIDIA's Transformer Engine, NVSHMEM and NVTX; Kineto's and CUPTI's profilers
    *("NVTE_", "NVSHMEM_", "NVTX_", "KINETO_", "CUPTI_"),
    # rocm.docs.amd.com: the pages of HIP, ROCr, MIOpen, rocBLAS, hipBLASLt and RCCL
    *("AMD_", "HIP_", "HSA_", "ROCR_", "GPU_", "MIOPEN_"),
    *("ROCBLAS_", "HIPBLASLT_", "TENSILE_", "RCCL_"),
    # paddlepaddle.org.cn, "FLAGS"; docs.oneflow.org and OneFlow's source; Horovod and DALI
    *("FLAGS_", "PADDLE_", "ONEFLOW_", "HOROVOD_", "DALI_"),
    # what these log and send by: glog's and gRPC's READMEs; what decodes: OpenCV's, Pillow's
    *("GLOG_", "GRPC_", "OPENCV_", "PILLOW_"),
    # OpenMP 5.2, chapter 21; GCC's libgomp; Intel's and LLVM's runtime
    *("OMP_", "GOMP_", "KMP_"),
    # oneMKL's and oneDNN's developer guides; OpenBLAS's and BLIS's READMEs
    *("MKL_", "MKLDNN_", "ONEDNN_", "DNNL_", "OPENBLAS_", "GOTO_", "BLIS_"),
    # numpy.org, "CPU/SIMD optimizations"; libjpeg-turbo's simd folder; docs.python.org,
    # "Environment variables"
    *("NPY_", "JSIMD_", "PYTHONOPTIMIZE", "PYTHONMALLOC", "PYTHONTRACEMALLOC", "PYTHONDEVMODE"),
    *("PYTHON_GIL", "PYTHON_JIT", "PYTHON_CPU_COUNT"),  # images set others, such as PYTHON_SHA256
    # ld.so(8), mallopt(3), glibc's "Tunables"; the manuals of jemalloc, gperftools and mimalloc
    *("LD_", "MALLOC_", "GLIBC_TUNABLES", "TCMALLOC_", "MIMALLOC_"),
    # ucx's, Open MPI's, libfabric's and gloo's documentation; Intel's MPI and oneCCL, MPICH, PSM,
    # NVIDIA's HCOLL and SHARP
    *("UCX_", "OMPI_", "FI_", "GLOO_", "I_MPI_", "CCL_"),
    *("MPICH_", "PSM2_", "PSM3_", "HCOLL_", "SHARP_"),
)  # beginnings of the names of variables that a library reads; comments name the documentation
# Terraform's begin as TensorFlow's do, and some hold secrets; records are published.
_NOT_READ = re.compile(
    r"TF_(?:VAR|CLI|TOKEN|LOG|WORKSPACE|DATA_DIR|REGISTRY|REATTACH|INPUT|IN_AUTOMATION)(?:_|$)"
    r"|.*(?:_KEY|TOKEN|SECRET|PASSWORD|CREDENTIAL)"
    # Snakemake sets it to the cores of its call; OpenBLAS reads OPENBLAS_NUM_THREADS first, which a
    # plan sets.
    r"|GOTO_NUM_THREADS"
)
_NAME = re.compile(rf"(?:{'|'.join(_READ)})\w*", re.ASCII)
_OF_A_MACHINE = re.compile(
    r".*_(?:HOME|ROOT|PATH|DIR|FILE|VERSION|IFNAME|HCA|DEVICES|DEVICE_ORDINAL|CAPABILITIES)"
    r"|NVIDIA_REQUIRE_.*"
)  # names of those that say where things are on a machine, or what an image is
_OF_A_RUN = frozenset(
    {
        *("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES"),
        "GPU_DEVICE_ORDINAL",  # Slurm gives it to jobs, of NVIDIA's GPUs, too
    }
)  # which of a machine's devices a run has, which its repeats need not share


def read_variables(environment: Mapping[str, str]) -> dict[str, str]:
    """Those of an environment's variables that some library reads, by name.

    Values are printable; names that sound like those of secrets are left out.
    """
    return {
        name: printable(environment[name])
        for name in sorted(environment)
        if _NAME.fullmatch(name) and not _NOT_READ.match(name)
    }


def deciding(inherited: Mapping[str, str]) -> dict[str, str]:
    """Those of a run's inherited variables that make it another thing on any machine."""
    return {name: inherited[name] for name in inherited if not _OF_A_MACHINE.fullmatch(name)}


def of_repeats(inherited: Mapping[str, str]) -> dict[str, str]:
    """Those of a run's inherited variables that its repeats must share, library paths included."""
    folders = {name: inherited[name] for name in inherited if name == "LD_LIBRARY_PATH"}
    return deciding(inherited) | folders


def differing_variables(records: Iterable[RunRecord]) -> list[str]:
    """The names of variables in which records differ: inherited ones, and those of the launch."""
    given = [record.inherited | read_variables(record.variables) for record in records]
    names = sorted({name for variables in given for name in variables} - _OF_A_RUN)
    return [name for name in names if len({variables.get(name) for variables in given}) > 1]
