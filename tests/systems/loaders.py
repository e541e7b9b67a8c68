"""How to get the batches of images that a system trains on, and what is asked of them."""

from pathlib import Path

from reperf.systems import System

COLOURS = [(r, g, b) for r in (10, 240) for g in (10, 240) for b in (10, 90, 170, 240)]
"""One for each class of the coloured records: red, green and blue."""

LOADERS = {
    "torch": """
import torch
def batches(flags, rank, world_size):
    return read(flags, rank, world_size, torch.device("cpu"))
""",
    "mxnet": """
import mxnet
from trainers.frameworks.mxnet.images import layout_on
def batches(flags, rank, world_size):
    axes = (0, 2, 3, 1) if layout_on(mxnet.cpu()) == "NCHW" else (0, 1, 2, 3)
    for images, labels in read(flags, rank, world_size, mxnet.cpu()):
        yield images.asnumpy().transpose(axes), labels.asnumpy()
""",
    "tensorflow": """
import tensorflow
tensorflow.compat.v1.enable_eager_execution()
batches = read
""",
    "jax": """
def batches(flags, rank, world_size):
    return read(flags, rank, world_size, None)
""",
    "paddle": """
from trainers.frameworks.paddle.inputs import on_device
def batches(flags, rank, world_size):
    return on_device(read(flags, rank, world_size))
""",
    "oneflow": f"""
import pathlib, socket, subprocess, sys, tempfile
given = {{}}
def batches(flags, rank, world_size):
    if not given:  # all ranks read at once
        read_together(flags, world_size)
    return given[rank]
def read_together(flags, world_size):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with tempfile.TemporaryDirectory() as folder:
        launcher = [sys.executable, "-m", "trainers.launchers.ranks", "--nodes=1", "--node-rank=0"]
        launcher += [f"--devices-per-node={{world_size}}", "--head=127.0.0.1", f"--port={{port}}"]
        script = [{str(Path(__file__).with_name("oneflow_ranks.py"))!r}]
        script += [folder, "8", json.dumps(vars(flags))]
        said = subprocess.run(
            [*launcher, *script], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        files = [pathlib.Path(folder, f"{{rank}}.npz") for rank in range(world_size)]
        if said.returncode or not all(file.exists() for file in files):
            sys.exit(f"{{said.stdout}}\\nthe launcher ended with status {{said.returncode}}")
        for rank, file in enumerate(files):
            with np.load(file) as saved:
                given[rank] = list(zip(saved["images"], saved["labels"]))
""",
}
"""By framework: what defines batches(flags, rank, world_size) in an environment of it.

They give images [N, H, W, 3] from 0 to 255 in red, green and blue, and labels. `read` is what the
system has to read images.
"""


def loader_of(system: System) -> str:
    """Code that defines a system's `batches`."""
    module, _, name = system.workloads["resnet50"].batches.rpartition(".")
    reader = f"from trainers.frameworks.{system.framework}.{module} import {name} as read"
    code = LOADERS[system.framework]
    return code if system.framework == "oneflow" else f"{reader}\n{code}"
