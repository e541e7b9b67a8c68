"""A machine, as run records and the doctor's file describe it."""

from pydantic import Field

from reperf.validation import Described


class Gpu(Described):
    """One GPU that the run could see."""

    name: str
    uuid: str
    memory_bytes: int
    capability: str | None = Field(None, description="compute capability, such as 9.0")
    gfx: str | None = Field(None, description="AMD's architecture, such as gfx90a; null: NVIDIA's")


class Host(Described):
    """One machine; in a run's record, the machine of rank 0."""

    hostname: str
    cpu: str
    cores: int = Field(description="logical CPUs that the run may use")
    memory_bytes: int
    os: str
    kernel: str
    gpus: tuple[Gpu, ...] = ()
    driver: str | None = None
    cuda: str | None = None
    topology_matrix: str | None = Field(None, description="nvidia-smi topo -m")


class Image(Described):
    """The container image that the trainer ran in."""

    reference: str = Field(description="as the configuration names it")
    digest: str
    """sha256:..., the registry's of a pulled image, else of the file, or of all files of the
    folder"""
    engine: str
    engine_version: str


class Site(Described):
    """The environment that was there already, made by somebody else."""

    named: str = Field(description="as the configuration names it")
    executable: str = Field(description="its Python")
    digest: str = Field(description="SHA-256 of its Python's version and the list of its packages")


class Environment(Described):
    """What the trainer ran in: what its own Python found there."""

    lock: str = Field("", description="the lock file, relative to the repository; empty: none")
    lock_sha256: str = ""
    image: Image | None = None
    site: Site | None = None
    python: str
    packages: dict[str, str] = Field(description="what was really installed: name -> version")
    overlay: dict[str, str] = Field({}, description="what was installed beside the image's own")
    system: str | None = Field(None, description="the operating system's name, in the container")
    framework: str | None = Field(None, description="its version")
    cuda: str | None = Field(None, description="that the framework was built for")
    rocm: str | None = Field(None, description="likewise; NVML says nothing of its GPUs")
    nccl: str | None = None
    architectures: tuple[str, ...] = ()
    """what its GPU code is compiled for: sm_90 is binary, compute_90 is PTX"""
