"""A machine, as run records and the doctor's file describe it."""

from pydantic import BaseModel, Field


class Gpu(BaseModel):
    """One GPU that the run could see."""

    name: str
    uuid: str
    memory_bytes: int
    capability: str | None = Field(None, description="compute capability, such as 9.0")


class Host(BaseModel):
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
